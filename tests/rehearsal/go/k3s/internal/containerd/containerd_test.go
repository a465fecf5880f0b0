package containerd

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"
)

func parse(t *testing.T, text string) map[string]any {
	t.Helper()
	var tree map[string]any
	if err := toml.Unmarshal([]byte(text), &tree); err != nil {
		t.Fatalf("no TOML: %v\n%s", err, text)
	}
	return tree
}

func at(tree map[string]any, path ...string) any {
	var current any = tree
	for _, key := range path {
		table, ok := current.(map[string]any)
		if !ok {
			return nil
		}
		current = table[key]
	}
	return current
}

func example() Config {
	config := Config{Program: "k3s", SystemdCgroup: true, EnableUnprivileged: true, PrivateRegistryConfig: &Registry{}}
	config.NodeConfig.Containerd.Root = "/var/lib/rancher/k3s/agent/containerd"
	config.NodeConfig.AgentConfig.PauseImage = "rancher/mirrored-pause:3.6"
	config.NodeConfig.AgentConfig.Snapshotter = "overlayfs"
	config.NodeConfig.AgentConfig.CNIBinDir = "/var/lib/rancher/k3s/data/current/bin"
	return config
}

const runtimePlugin, imagesPlugin = "io.containerd.cri.v1.runtime", "io.containerd.cri.v1.images"

func TestBaseIsVersion3WithRuncOnly(t *testing.T) {
	text, err := Render("", example())
	if err != nil {
		t.Fatal(err)
	}
	tree := parse(t, text)
	if at(tree, "version") != int64(3) {
		t.Errorf("version %v", at(tree, "version"))
	}
	runtimes := at(tree, "plugins", runtimePlugin, "containerd", "runtimes").(map[string]any)
	if len(runtimes) != 1 || at(runtimes, "runc", "options", "SystemdCgroup") != true {
		t.Errorf("runtimes %v", runtimes)
	}
	if at(tree, "plugins", runtimePlugin, "containerd", "default_runtime_name") != nil {
		t.Error("there is a default runtime")
	}
	if at(tree, "plugins", imagesPlugin, "pinned_images", "sandbox") != "rancher/mirrored-pause:3.6" {
		t.Error("no pause image")
	}
	if at(tree, "plugins", runtimePlugin, "restrict_oom_score_adj") != nil {
		t.Error("restrict_oom_score_adj without need")
	}
}

func TestRuntimesOnThePathAreFound(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"nvidia-container-runtime", "nvidia-container-runtime.cdi", "containerd-shim-spin-v1"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// Not executable: not a runtime.
	if err := os.WriteFile(filepath.Join(folder, "crun"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	config := example()
	config.ExtraRuntimes = FindRuntimes()
	text, err := Render("", config)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text, "[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.'nvidia'.options]\n  BinaryName = \""+folder+"/nvidia-container-runtime\"\n  SystemdCgroup = true") {
		t.Errorf("k3s's own form of the nvidia table is missing:\n%s", text)
	}
	runtimes := at(parse(t, text), "plugins", runtimePlugin, "containerd", "runtimes").(map[string]any)
	if len(runtimes) != 4 {
		t.Errorf("runtimes %v", runtimes)
	}
	if at(runtimes, "nvidia-cdi", "options", "BinaryName") != filepath.Join(folder, "nvidia-container-runtime.cdi") {
		t.Errorf("nvidia-cdi %v", runtimes["nvidia-cdi"])
	}
	if at(runtimes, "spin", "runtime_type") != filepath.Join(folder, "containerd-shim-spin-v1") || at(runtimes, "spin", "options") != nil {
		t.Errorf("spin %v", runtimes["spin"])
	}
}

func TestDefaultRuntime(t *testing.T) {
	config := example()
	config.NodeConfig.DefaultRuntime = "nvidia"
	if _, err := Render("", config); err == nil || err.Error() != "default runtime nvidia was not found" {
		t.Errorf("%v", err)
	}
	config.ExtraRuntimes = map[string]Runtime{"nvidia": {"io.containerd.runc.v2", "/usr/bin/nvidia-container-runtime"}}
	text, err := Render("", config)
	if err != nil || at(parse(t, text), "plugins", runtimePlugin, "containerd", "default_runtime_name") != "nvidia" {
		t.Errorf("%v\n%s", err, text)
	}
}

func TestUserTemplateBuildsOnBase(t *testing.T) {
	folder := t.TempDir()
	user := "{{ template \"base\" . }}\n\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.'custom']\n  runtime_type = \"io.containerd.runc.v2\"\n"
	os.WriteFile(filepath.Join(folder, "config-v3.toml.tmpl"), []byte(user), 0o600)
	os.WriteFile(filepath.Join(folder, "config.toml.tmpl"), []byte("version = 2\n"), 0o600)
	if err := Write(folder, example()); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(folder, "config.toml"))
	if err != nil {
		t.Fatal(err)
	}
	runtimes := at(parse(t, string(raw)), "plugins", runtimePlugin, "containerd", "runtimes").(map[string]any)
	if runtimes["custom"] == nil || runtimes["runc"] == nil {
		t.Errorf("%s", raw)
	}
	// A template that copies instead of including is taken as it is: K05 is the user's to see.
	os.Remove(filepath.Join(folder, "config-v3.toml.tmpl"))
	if err := Write(folder, example()); err != nil {
		t.Fatal(err)
	}
	if raw, _ := os.ReadFile(filepath.Join(folder, "config.toml")); string(raw) != "version = 2\n" {
		t.Errorf("%s", raw)
	}
}

func TestBrokenTemplateIsAnError(t *testing.T) {
	if _, err := Render("{{ .NoSuchField }}", example()); err == nil {
		t.Error("accepted")
	}
}

const registriesYAML = `
mirrors:
  docker.io:
    endpoint: ["https://mirror.example:5000", "http://10.0.0.1:5001/v2/proxy"]
    rewrite:
      "^rancher/(.*)": "public/$1"
  "*":
    endpoint: ["localhost:5000"]
configs:
  mirror.example:5000:
    auth: {username: me, password: "p\"w"}
    tls: {ca_file: /etc/ca.pem, insecure_skip_verify: true}
  own.example:
    tls: {cert_file: /c.pem, key_file: /k.pem}
`

func TestRegistries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "registries.yaml")
	os.WriteFile(path, []byte(registriesYAML), 0o600)
	registry, err := ReadRegistries(path)
	if err != nil {
		t.Fatal(err)
	}
	files, err := registry.Hosts(false)
	if err != nil {
		t.Fatal(err)
	}
	docker := parse(t, files["docker.io"])
	if docker["server"] != "https://registry-1.docker.io/v2" {
		t.Errorf("server %v", docker["server"])
	}
	mirror := at(docker, "host", "https://mirror.example:5000/v2").(map[string]any)
	if mirror["skip_verify"] != true || at(mirror, "rewrite", "^rancher/(.*)") != "public/$1" || mirror["override_path"] != nil {
		t.Errorf("mirror %v", mirror)
	}
	if at(docker, "host", "http://10.0.0.1:5001/v2/proxy", "override_path") != true {
		t.Errorf("%s", files["docker.io"])
	}
	if at(parse(t, files["_default"]), "host", "http://localhost:5000/v2") == nil {
		t.Errorf("%s", files["_default"])
	}
	if at(parse(t, files["own.example"]), "host", "https://own.example/v2", "client") == nil {
		t.Errorf("%s", files["own.example"])
	}
	config := example()
	config.PrivateRegistryConfig = registry
	text, err := Render("", config)
	if err != nil || at(parse(t, text), "plugins", imagesPlugin, "registry", "configs", "mirror.example:5000", "auth", "password") != `p"w` {
		t.Errorf("%v\n%s", err, text)
	}
	without, err := registry.Hosts(true)
	if err != nil || strings.Contains(without["docker.io"], "server =") {
		t.Errorf("%v\n%s", err, without["docker.io"])
	}
}

func TestRegistriesMissingAndBroken(t *testing.T) {
	folder := t.TempDir()
	if registry, err := ReadRegistries(filepath.Join(folder, "none")); err != nil || len(registry.Mirrors) != 0 {
		t.Errorf("%v", err)
	}
	broken := &Registry{Mirrors: map[string]Mirror{"a": {Endpoints: []string{"https://"}}}}
	if _, err := broken.Hosts(false); err == nil {
		t.Error("an endpoint without a host was accepted")
	}
}

func TestArchives(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"b.tar.zst", "a.tar", "c.tar.gz", "notes.txt"} {
		os.WriteFile(filepath.Join(folder, name), nil, 0o600)
	}
	found, err := Archives(folder)
	if err != nil || len(found) != 3 || filepath.Base(found[0]) != "a.tar" {
		t.Errorf("%v %v", found, err)
	}
}
