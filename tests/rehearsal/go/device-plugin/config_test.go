package main

import (
	"encoding/json"
	"strings"
	"testing"
)

const shared = `
version: v1
flags: {migStrategy: none}
sharing:
  timeSlicing:
    renameByDefault: true
    failRequestsGreaterThanOne: true
    resources: [{name: nvidia.com/gpu, replicas: 4}]
`

func parsed(t *testing.T, text string) *config {
	t.Helper()
	c := defaults()
	if err := c.parse([]byte(text)); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSharedResourceIsRenamed(t *testing.T) {
	c := parsed(t, shared)
	if got := c.resourceName(); got != "nvidia.com/gpu.shared" {
		t.Errorf("resource %q", got)
	}
	if got := c.replicated(); got.Replicas != 4 || got.Devices != "all" {
		t.Errorf("replicated %+v", got)
	}
}

func TestUnknownKeysVanish(t *testing.T) {
	c := parsed(t, strings.Replace(shared, "flags: {", "flags: {renameByDefault: true, ", 1))
	if got := c.resourceName(); got != "nvidia.com/gpu.shared" {
		t.Errorf("resource %q", got)
	}
	wrongPlace := "version: v1\nflags: {renameByDefault: true}\nsharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}"
	if got := parsed(t, wrongPlace).resourceName(); got != gpuResource {
		t.Errorf("renameByDefault under flags was not ignored: %q", got)
	}
}

func TestRefusals(t *testing.T) {
	cases := map[string]string{
		"sharing: {}": "missing version field",
		"version: v2": "unknown version: v2",
		"version: v1\nsharing: {timeSlicing: {resources: [{name: gpu, replicas: 1}]}}": "number of replicas must be >= 2",
	}
	for text, want := range cases {
		err := defaults().parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

func TestUnsupported(t *testing.T) {
	for _, strategy := range []string{"cdi-cri", "cdi-annotations"} {
		c := defaults()
		c.Flags.Plugin.DeviceListStrategy = wordList{strategy}
		if err := c.unsupported(); err == nil || !strings.Contains(err.Error(), "stand-in") {
			t.Errorf("%s: %v", strategy, err)
		}
	}
	mps := parsed(t, "version: v1\nsharing: {mps: {resources: [{name: gpu, replicas: 4}]}}")
	if err := mps.unsupported(); err == nil {
		t.Error("mps was taken")
	}
	if err := parsed(t, shared).unsupported(); err != nil {
		t.Error(err)
	}
}

func TestEnvironmentOverridesFile(t *testing.T) {
	t.Setenv("DEVICE_LIST_STRATEGY", "envvar,volume-mounts")
	t.Setenv("FAIL_ON_INIT_ERROR", "false")
	options, err := parseOptions([]string{"--device-id-strategy=index"})
	if err != nil {
		t.Fatal(err)
	}
	c, err := loadConfig(options)
	if err != nil {
		t.Fatal(err)
	}
	if c.Flags.FailOnInitError || c.Flags.Plugin.DeviceIDStrategy != "index" || len(c.Flags.Plugin.DeviceListStrategy) != 2 {
		t.Errorf("%+v", c.Flags)
	}
}

func TestPrintedConfigKeepsTheRealOrder(t *testing.T) {
	text, err := json.Marshal(parsed(t, shared))
	if err != nil {
		t.Fatal(err)
	}
	at := -1
	for _, key := range []string{"version", "flags", "migStrategy", "failOnInitError", "plugin", "resources", "sharing", "renameByDefault", "rename", "replicas", "imex"} {
		next := strings.Index(string(text), `"`+key+`"`)
		if next < at {
			t.Errorf("%s stands too early in %s", key, text)
		}
		at = next
	}
}
