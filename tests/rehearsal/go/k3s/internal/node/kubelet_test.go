package node

import (
	"slices"
	"testing"
)

func TestOverride(t *testing.T) {
	own := []string{"--v=0", "--node-labels=a=1", "--read-only-port=0"}
	for _, c := range []struct {
		users, want []string
	}{
		{nil, own},
		{[]string{"v=4"}, []string{"--node-labels=a=1", "--read-only-port=0", "--v=4"}},
		{[]string{"--v=4"}, []string{"--node-labels=a=1", "--read-only-port=0", "--v=4"}},
		{[]string{"node-labels+=b=2"}, []string{"--v=0", "--read-only-port=0", "--node-labels=a=1", "--node-labels=b=2"}},
		{[]string{"node-labels-=b=2"}, []string{"--v=0", "--read-only-port=0", "--node-labels=b=2", "--node-labels=a=1"}},
		{[]string{"feature-gates=A=true", "feature-gates=B=true"}, append(slices.Clone(own), "--feature-gates=A=true", "--feature-gates=B=true")},
		{[]string{"make-iptables-util-chains"}, append(slices.Clone(own), "--make-iptables-util-chains=true")},
		{[]string{"eviction-hard=imagefs.available<1%,nodefs.available<1%"}, append(slices.Clone(own), "--eviction-hard=imagefs.available<1%,nodefs.available<1%")},
	} {
		if got := Override(own, c.users); !slices.Equal(got, c.want) {
			t.Errorf("%v: %v", c.users, got)
		}
	}
}

func TestTaints(t *testing.T) {
	got, err := Taints([]string{"nvidia.com/gpu=present:NoSchedule", "only:NoExecute"})
	if err != nil || !slices.Equal(got, []Taint{{"nvidia.com/gpu", "present", "NoSchedule"}, {"only", "", "NoExecute"}}) {
		t.Errorf("%v %v", got, err)
	}
	for _, text := range []string{"key=value", "key=value:Never"} {
		if _, err := Taints([]string{text}); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}
