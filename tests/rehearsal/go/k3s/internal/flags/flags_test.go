package flags

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func noEnv(string) string { return "" }

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestFilesMergeByNameAndPlusAdds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, "node-label: [a=1, b=2]\nwrite-kubeconfig-mode: \"0644\"\ndisable: traefik\n")
	write(t, path+".d/20-more.yaml", "node-label+:\n  - c=3\ndisable+: servicelb\n")
	write(t, path+".d/10-mode.yaml", "write-kubeconfig-mode: \"0600\"\n")
	write(t, path+".d/30-ignored.yml", "node-name: no\n")
	options, err := Parse(Server, []string{"--config", path}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if got := options.List("node-label"); !slices.Equal(got, []string{"a=1", "b=2", "c=3"}) {
		t.Errorf("node-label: %v", got)
	}
	if got := options.List("disable"); !slices.Equal(got, []string{"traefik", "servicelb"}) {
		t.Errorf("disable: %v", got)
	}
	if got := options.Text("write-kubeconfig-mode"); got != "0600" {
		t.Errorf("write-kubeconfig-mode: %q", got)
	}
	if got := options.Text("node-name"); got != "" {
		t.Errorf("a .yml file was read: node-name %q", got)
	}
}

func TestKeyWithoutPlusReplacesList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, "node-label: [a=1]\n")
	write(t, path+".d/10.yaml", "node-label: [b=2]\n")
	options, err := Parse(Server, []string{"-c", path}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if got := options.List("node-label"); !slices.Equal(got, []string{"b=2"}) {
		t.Errorf("node-label: %v", got)
	}
}

func TestCommandLineBeatsFileBeatsEnvironmentBeatsDefault(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, "token: from-file\nnode-name: file-name\n")
	env := func(name string) string {
		return map[string]string{"K3S_TOKEN": "from-env", "K3S_NODE_NAME": "env-name", "K3S_KUBECONFIG_MODE": "0640"}[name]
	}
	options, err := Parse(Server, []string{"--config=" + path, "--node-name", "line-name"}, env)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"node-name": "line-name", "token": "from-file", "write-kubeconfig-mode": "0640", "cluster-domain": "cluster.local",
	} {
		if got := options.Text(name); got != want {
			t.Errorf("%s: %q instead of %q", name, got, want)
		}
	}
}

func TestUnknownFlagIsAnErrorOnTheLineAndAWarningInTheFile(t *testing.T) {
	if _, err := Parse(Server, []string{"--no-such-thing"}, noEnv); err == nil || err.Error() != "flag provided but not defined: -no-such-thing" {
		t.Errorf("command line: %v", err)
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, "no-such-thing: 1\n")
	options, err := Parse(Server, []string{"--config", path}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if len(options.Warnings) != 1 || !strings.Contains(options.Warnings[0], "Unknown flag --no-such-thing found in config.yaml, skipping") {
		t.Errorf("warnings: %v", options.Warnings)
	}
}

func TestRefusedOptionsSayWhy(t *testing.T) {
	_, err := Parse(Server, []string{"--docker"}, noEnv)
	if err == nil || !strings.Contains(err.Error(), "--docker is not supported by the rehearsal's stand-in for k3s") {
		t.Errorf("%v", err)
	}
	if _, err := Parse(Server, []string{"--docker=false"}, noEnv); err != nil {
		t.Errorf("a refused switch that is off: %v", err)
	}
}

func TestWrongValuesAreRefused(t *testing.T) {
	for _, word := range []string{"--https-listen-port=many", "--cluster-init=perhaps", "--node-name"} {
		if _, err := Parse(Server, []string{word}, noEnv); err == nil {
			t.Errorf("%s was accepted", word)
		}
	}
}

func TestArgumentsOfComponentsKeepTheirCommas(t *testing.T) {
	options, err := Parse(Server, []string{"--kubelet-arg", "eviction-hard=imagefs.available<1%,nodefs.available<1%", "--disable=a,b"}, noEnv)
	if err != nil {
		t.Fatal(err)
	}
	if got := options.List("kubelet-arg"); len(got) != 1 {
		t.Errorf("kubelet-arg: %q", got)
	}
	if got := options.List("disable"); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("disable: %q", got)
	}
}

func TestMissingConfigFileMattersOnlyWhenAskedFor(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none.yaml")
	if _, err := Parse(Agent, []string{"--config", missing}, noEnv); err == nil {
		t.Error("a named file that is missing was accepted")
	}
}

func TestBrokenConfigNamesFileAndPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	write(t, path, "node-label:\n  - {a: 1}\n")
	_, err := Parse(Server, []string{"--config", path}, noEnv)
	if err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("%v", err)
	}
}
