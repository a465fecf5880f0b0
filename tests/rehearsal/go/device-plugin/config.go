package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"
)

const (
	resourcePrefix  = "nvidia.com/"
	gpuResource     = resourcePrefix + "gpu"
	strategyEnvvar  = "envvar"
	strategyMounts  = "volume-mounts"
	sharedSuffix    = ".shared"
	leastReplicas   = 2
	defaultMigValue = "none"
)

// config is NVIDIA's configuration file, version v1; the order of fields is that of the text in the plugin's log.
type config struct {
	Version   string    `json:"version"`
	Flags     flags     `json:"flags"`
	Resources resources `json:"resources"`
	Sharing   sharing   `json:"sharing"`
	Imex      struct{}  `json:"imex"`
}

type flags struct {
	MigStrategy             string      `json:"migStrategy"`
	FailOnInitError         bool        `json:"failOnInitError"`
	MpsRoot                 string      `json:"mpsRoot"`
	NvidiaDriverRoot        string      `json:"nvidiaDriverRoot"`
	NvidiaDevRoot           string      `json:"nvidiaDevRoot"`
	GDRCopyEnabled          bool        `json:"gdrcopyEnabled"`
	GDSEnabled              bool        `json:"gdsEnabled"`
	MOFEDEnabled            bool        `json:"mofedEnabled"`
	UseNodeFeatureAPI       *bool       `json:"useNodeFeatureAPI"`
	DeviceDiscoveryStrategy string      `json:"deviceDiscoveryStrategy"`
	Plugin                  pluginFlags `json:"plugin"`
}

type pluginFlags struct {
	PassDeviceSpecs     bool     `json:"passDeviceSpecs"`
	DeviceListStrategy  wordList `json:"deviceListStrategy"`
	DeviceIDStrategy    string   `json:"deviceIDStrategy"`
	CDIAnnotationPrefix string   `json:"cdiAnnotationPrefix"`
	NvidiaCTKPath       string   `json:"nvidiaCTKPath"`
	ContainerDriverRoot string   `json:"containerDriverRoot"`
}

type resources struct {
	GPUs []resource `json:"gpus"`
}

type resource struct {
	Pattern string `json:"pattern"`
	Name    string `json:"name"`
}

type sharing struct {
	TimeSlicing *timeSlicing    `json:"timeSlicing,omitempty"`
	MPS         json.RawMessage `json:"mps,omitempty"`
}

type timeSlicing struct {
	RenameByDefault            bool                 `json:"renameByDefault,omitempty"`
	FailRequestsGreaterThanOne bool                 `json:"failRequestsGreaterThanOne,omitempty"`
	Resources                  []replicatedResource `json:"resources,omitempty"`
}

type replicatedResource struct {
	Name     string `json:"name"`
	Rename   string `json:"rename,omitempty"`
	Devices  any    `json:"devices"`
	Replicas int    `json:"replicas"`
}

// wordList is one word or a list of words, as the file may say either.
type wordList []string

// UnmarshalJSON takes "a", "a,b" and ["a", "b"].
func (s *wordList) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*s = strings.Split(one, ",")
		return nil
	}
	var many []string
	if err := json.Unmarshal(text, &many); err != nil {
		return err
	}
	*s = many
	return nil
}

// options are what the command line and the environment say; nil means that neither did.
type options struct {
	configFile string
	values     map[string]*string
}

// settings are the options that override the file: command line name and environment variable.
var settings = []struct{ name, variable string }{
	{"mig-strategy", "MIG_STRATEGY"},
	{"fail-on-init-error", "FAIL_ON_INIT_ERROR"},
	{"mps-root", "MPS_ROOT"},
	{"driver-root", "NVIDIA_DRIVER_ROOT"},
	{"dev-root", "NVIDIA_DEV_ROOT"},
	{"pass-device-specs", "PASS_DEVICE_SPECS"},
	{"device-list-strategy", "DEVICE_LIST_STRATEGY"},
	{"device-id-strategy", "DEVICE_ID_STRATEGY"},
	{"device-discovery-strategy", "DEVICE_DISCOVERY_STRATEGY"},
	{"cdi-annotation-prefix", "CDI_ANNOTATION_PREFIX"},
	{"nvidia-cdi-hook-path", "NVIDIA_CDI_HOOK_PATH"},
	{"container-driver-root", "CONTAINER_DRIVER_ROOT"},
}

func parseOptions(arguments []string) (*options, error) {
	parsed := &options{configFile: os.Getenv("CONFIG_FILE"), values: map[string]*string{}}
	set := flag.NewFlagSet("nvidia-device-plugin", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	set.StringVar(&parsed.configFile, "config-file", parsed.configFile, "")
	for _, setting := range settings {
		if value, found := os.LookupEnv(setting.variable); found {
			parsed.values[setting.name] = &value
		}
		set.Func(setting.name, "", func(value string) error {
			parsed.values[setting.name] = &value
			return nil
		})
	}
	if err := set.Parse(arguments); err != nil {
		return nil, fmt.Errorf("%w (this stand-in knows --config-file and the flags that it shares with %s)", err, answersFor)
	}
	return parsed, nil
}

func defaults() *config {
	return &config{
		Version: "v1",
		Flags: flags{
			MigStrategy:             defaultMigValue,
			FailOnInitError:         true,
			NvidiaDriverRoot:        "/",
			NvidiaDevRoot:           "/",
			DeviceDiscoveryStrategy: "auto",
			Plugin: pluginFlags{
				DeviceListStrategy:  wordList{strategyEnvvar},
				DeviceIDStrategy:    "uuid",
				CDIAnnotationPrefix: "cdi.k8s.io/",
				NvidiaCTKPath:       "/usr/bin/nvidia-ctk",
				ContainerDriverRoot: "/driver-root",
			},
		},
	}
}

// loadConfig reads the file over the defaults, and the options over the file.
func loadConfig(options *options) (*config, error) {
	loaded := defaults()
	if options.configFile != "" {
		text, err := os.ReadFile(options.configFile)
		if err != nil {
			return nil, fmt.Errorf("unable to finalize config: error opening config file: %w", err)
		}
		if err := loaded.parse(text); err != nil {
			return nil, fmt.Errorf("unable to finalize config: error parsing config file: %w", err)
		}
	}
	if err := loaded.override(options.values); err != nil {
		return nil, err
	}
	klog.Info("Updating config with default resource matching patterns.")
	loaded.Resources = resources{GPUs: []resource{{Pattern: "*", Name: gpuResource}}}
	return loaded, nil
}

// parse reads the file's text. Like the real plugin it lets unknown keys pass without a word.
func (c *config) parse(text []byte) error {
	c.Version = ""
	if err := yaml.Unmarshal(text, c); err != nil {
		return fmt.Errorf("unmarshal error: %w", err)
	}
	switch c.Version {
	case "v1":
	case "":
		return errors.New("missing version field")
	default:
		return fmt.Errorf("unknown version: %v", c.Version)
	}
	if len(c.Resources.GPUs) > 0 {
		klog.Warning("Customizing the 'resources' field is not yet supported in the config. Ignoring...")
	}
	if c.Sharing.TimeSlicing == nil {
		return nil
	}
	return c.Sharing.TimeSlicing.normalise()
}

func (t *timeSlicing) normalise() error {
	for i := range t.Resources {
		shared := &t.Resources[i]
		if shared.Name == "" {
			return errors.New("unmarshal error: missing name in sharing.timeSlicing.resources")
		}
		if shared.Replicas < leastReplicas {
			return fmt.Errorf("unmarshal error: number of replicas must be >= %d", leastReplicas)
		}
		if !strings.HasPrefix(shared.Name, resourcePrefix) {
			shared.Name = resourcePrefix + shared.Name
		}
		if shared.Rename != "" {
			klog.Warning("Setting the 'rename' field in sharing.timeSlicing.resources is not yet supported in the config. Ignoring...")
			shared.Rename = ""
		}
		if shared.Devices != nil && shared.Devices != "all" {
			klog.Warning("Setting the 'devices' field in sharing.timeSlicing.resources is not yet supported in the config. Ignoring...")
		}
		shared.Devices = "all"
		if t.RenameByDefault {
			shared.Rename = shared.Name + sharedSuffix
		}
	}
	return nil
}

func (c *config) override(values map[string]*string) error {
	plugin := &c.Flags.Plugin
	texts := map[string]*string{
		"mig-strategy":              &c.Flags.MigStrategy,
		"mps-root":                  &c.Flags.MpsRoot,
		"driver-root":               &c.Flags.NvidiaDriverRoot,
		"dev-root":                  &c.Flags.NvidiaDevRoot,
		"device-id-strategy":        &plugin.DeviceIDStrategy,
		"device-discovery-strategy": &c.Flags.DeviceDiscoveryStrategy,
		"cdi-annotation-prefix":     &plugin.CDIAnnotationPrefix,
		"nvidia-cdi-hook-path":      &plugin.NvidiaCTKPath,
		"container-driver-root":     &plugin.ContainerDriverRoot,
	}
	switches := map[string]*bool{"fail-on-init-error": &c.Flags.FailOnInitError, "pass-device-specs": &plugin.PassDeviceSpecs}
	for name, value := range values {
		switch {
		case texts[name] != nil:
			*texts[name] = *value
		case switches[name] != nil:
			parsed, err := strconv.ParseBool(*value)
			if err != nil {
				return fmt.Errorf("could not parse %q as bool value for flag %s", *value, name)
			}
			*switches[name] = parsed
		case name == "device-list-strategy":
			plugin.DeviceListStrategy = strings.Split(*value, ",")
		}
	}
	return nil
}

// unsupported names what the real plugin does and this one does not.
func (c *config) unsupported() error {
	refuse := func(what string) error {
		return fmt.Errorf("%s is not available in this stand-in (gpunode rehearsal); the real plugin has it", what)
	}
	for _, strategy := range c.Flags.Plugin.DeviceListStrategy {
		switch strategy {
		case strategyEnvvar, strategyMounts:
		case "cdi-annotations", "cdi-cri":
			return refuse("device list strategy " + strategy)
		default:
			return fmt.Errorf("invalid device list strategy: %v", strategy)
		}
	}
	if !slices.Contains([]string{"uuid", "index"}, c.Flags.Plugin.DeviceIDStrategy) {
		return fmt.Errorf("invalid --device-id-strategy option: %v", c.Flags.Plugin.DeviceIDStrategy)
	}
	if c.Flags.MigStrategy != defaultMigValue {
		return refuse("MIG strategy " + c.Flags.MigStrategy)
	}
	if c.Flags.Plugin.PassDeviceSpecs {
		return refuse("passDeviceSpecs")
	}
	if len(c.Sharing.MPS) > 0 && string(c.Sharing.MPS) != "null" {
		return refuse("sharing.mps (which takes precedence over sharing.timeSlicing)")
	}
	return nil
}

// replicated is the sharing entry of the GPU resource, nil when GPUs are given out whole.
func (c *config) replicated() *replicatedResource {
	if c.Sharing.TimeSlicing == nil {
		return nil
	}
	for i, shared := range c.Sharing.TimeSlicing.Resources {
		if shared.Name == gpuResource {
			return &c.Sharing.TimeSlicing.Resources[i]
		}
	}
	return nil
}

// resourceName is what the node offers.
func (c *config) resourceName() string {
	if shared := c.replicated(); shared != nil && shared.Rename != "" {
		return shared.Rename
	}
	return gpuResource
}
