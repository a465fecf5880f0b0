package deploy

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestStageHonoursDisableAndSkip(t *testing.T) {
	folder := t.TempDir()
	values := map[string]string{"CLUSTER_DNS": "10.43.0.10", "CLUSTER_DOMAIN": "cluster.local", "SYSTEM_DEFAULT_REGISTRY": ""}
	if err := Stage(folder, nil, values); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(folder, "coredns.yaml"))
	if err != nil || !strings.Contains(string(raw), `clusterIP: "10.43.0.10"`) || strings.Contains(string(raw), "%{") {
		t.Errorf("coredns.yaml: %v\n%s", err, raw)
	}
	os.WriteFile(filepath.Join(folder, "coredns.yaml.skip"), nil, 0o600)
	os.WriteFile(filepath.Join(folder, "coredns.yaml"), []byte("# mine\n"), 0o600)
	if err := Stage(folder, []string{"runtimes"}, values); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "runtimes.yaml")); !os.IsNotExist(err) {
		t.Errorf("runtimes.yaml is there although disabled: %v", err)
	}
	if raw, _ := os.ReadFile(filepath.Join(folder, "coredns.yaml")); string(raw) != "# mine\n" {
		t.Errorf("a skipped file was written: %s", raw)
	}
	files, err := Files(folder)
	if err != nil || len(files) != 1 || filepath.Base(files[0]) != "rolebindings.yaml" {
		t.Errorf("%v %v", files, err)
	}
}

func TestRuntimeClassesAreThoseOfK3s(t *testing.T) {
	raw, err := manifests.ReadFile("manifests/runtimes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := Decode(raw)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range objects {
		names = append(names, object["handler"].(string))
	}
	if got := strings.Join(names, " "); got != "nvidia nvidia-experimental crun lunatic slight spin wws wasmedge wasmer wasmtime" {
		t.Error(got)
	}
}

func TestDecodeTakesListsApart(t *testing.T) {
	objects, err := Decode([]byte("---\n# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- {kind: A}\n- {kind: B}\n---\nkind: C\n"))
	if err != nil || len(objects) != 3 || objects[2]["kind"] != "C" {
		t.Errorf("%v %v", objects, err)
	}
	if _, err := Decode([]byte("a: [")); err == nil {
		t.Error("broken YAML was accepted")
	}
}
