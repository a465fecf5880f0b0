package flags

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// Options are the values in force: the command line wins over the configuration files, those over the environment,
// and that over the default. A list given on the command line replaces the list of the files.
type Options struct {
	values map[string][]string
	// Warnings are to be logged once logging is set up.
	Warnings []string
}

// Parse reads the command line of `k3s server` or `k3s agent`, the environment, and the configuration files.
func Parse(on Command, args []string, env func(string) string) (*Options, error) {
	given, err := commandLine(on, args)
	if err != nil {
		return nil, err
	}
	options := &Options{values: map[string][]string{}}
	for _, flag := range Table {
		if flag.On&on == 0 {
			continue
		}
		if flag.Default != "" {
			options.values[flag.Name] = []string{flag.Default}
		}
		if value := env(flag.Env); flag.Env != "" && value != "" {
			if err := check(flag, value); err != nil {
				return nil, fmt.Errorf("environment variable %s: %w", flag.Env, err)
			}
			options.values[flag.Name] = split(flag, value)
		}
	}
	if err := options.files(on, given, env); err != nil {
		return nil, err
	}
	for name, values := range given {
		options.values[name] = values
	}
	return options, options.care(on)
}

func (o *Options) files(on Command, given map[string][]string, env func(string) string) error {
	path, asked := o.Text("config"), env("K3S_CONFIG_FILE") != ""
	if values := given["config"]; len(values) > 0 {
		path, asked = values[0], true
	}
	settings, err := ReadConfig(path)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) && !asked {
			return nil
		}
		return err
	}
	for _, setting := range settings {
		flag, known := find(setting.Key, on)
		if !known {
			// k3s does the same: one file may serve versions and subcommands with different options.
			o.Warnings = append(o.Warnings, fmt.Sprintf("Unknown flag --%s found in config.yaml, skipping", setting.Key))
			continue
		}
		var values []string
		for _, value := range setting.Values {
			if err := check(flag, value); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			values = append(values, split(flag, value)...)
		}
		if flag.Kind != List && len(values) > 1 {
			values = values[len(values)-1:]
		}
		o.values[flag.Name] = values
	}
	return nil
}

// care warns of options that have no effect here and refuses those that cannot be kept.
func (o *Options) care(on Command) error {
	for _, flag := range Table {
		if flag.On&on == 0 || flag.Care == Honoured || !o.differs(flag) {
			continue
		}
		if flag.Care == Refused {
			return fmt.Errorf("--%s is not supported by the rehearsal's stand-in for k3s: %s", flag.Name, flag.Note)
		}
		o.Warnings = append(o.Warnings, fmt.Sprintf("--%s has no effect in the rehearsal's stand-in for k3s: %s", flag.Name, flag.Note))
	}
	return nil
}

func (o *Options) differs(flag Flag) bool {
	value := strings.Join(o.values[flag.Name], ",")
	if flag.Kind == Switch && flag.Default == "" {
		return value == "true"
	}
	return value != flag.Default
}

func commandLine(on Command, args []string) (map[string][]string, error) {
	given := map[string][]string{}
	for i := 0; i < len(args); i++ {
		word := args[i]
		if !strings.HasPrefix(word, "-") || word == "-" {
			return nil, fmt.Errorf("unexpected argument %q", word)
		}
		name, value, inline := strings.Cut(strings.TrimLeft(word, "-"), "=")
		flag, known := find(name, on)
		if !known {
			return nil, fmt.Errorf("flag provided but not defined: -%s", name)
		}
		switch {
		case inline:
		case flag.Kind == Switch:
			value = "true"
		case i+1 < len(args):
			i++
			value = args[i]
		default:
			return nil, fmt.Errorf("flag needs an argument: -%s", name)
		}
		if err := check(flag, value); err != nil {
			return nil, err
		}
		if flag.Kind == List {
			given[flag.Name] = append(given[flag.Name], split(flag, value)...)
		} else {
			given[flag.Name] = []string{value}
		}
	}
	return given, nil
}

// split takes lists of addresses and names apart at commas. The values of the *-arg options may hold commas that
// belong to the component's flag.
func split(flag Flag, value string) []string {
	if flag.Kind != List || strings.HasSuffix(flag.Name, "-arg") {
		return []string{value}
	}
	return strings.Split(value, ",")
}

func check(flag Flag, value string) error {
	var err error
	switch flag.Kind {
	case Switch:
		_, err = strconv.ParseBool(value)
	case Number:
		_, err = strconv.Atoi(value)
	case Duration:
		_, err = time.ParseDuration(value)
	}
	if err != nil {
		return fmt.Errorf("invalid value %q for flag -%s: %w", value, flag.Name, err)
	}
	return nil
}

// Text returns an option's value, "" when it was not given.
func (o *Options) Text(name string) string {
	if values := o.values[name]; len(values) > 0 {
		return values[len(values)-1]
	}
	return ""
}

// List returns all values of an option.
func (o *Options) List(name string) []string { return o.values[name] }

// Is tells whether a switch is on.
func (o *Options) Is(name string) bool {
	on, _ := strconv.ParseBool(o.Text(name))
	return on
}

// Number returns a whole number, 0 when it was not given.
func (o *Options) Number(name string) int {
	number, _ := strconv.Atoi(o.Text(name))
	return number
}
