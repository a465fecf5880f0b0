package flags

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"gopkg.in/yaml.v3"
)

// Setting is one key of the configuration with all its values.
type Setting struct {
	Key    string
	Values []string
}

// ReadConfig merges config.yaml and config.yaml.d/*.yaml the way k3s does: files in the order of their names, the last
// value of a key wins, and a key that ends in + adds to what the files before it gave.
//
// A missing config.yaml is an error (os.ErrNotExist) only when there is no file in the folder either.
func ReadConfig(path string) ([]Setting, error) {
	files, err := configFiles(path)
	if err != nil {
		return nil, err
	}
	var order []string
	merged := map[string][]string{}
	for _, file := range files {
		settings, err := readFile(file)
		if err != nil {
			return nil, fmt.Errorf("failed to read configuration %s: %w", file, err)
		}
		for _, setting := range settings {
			key, adds := strings.CutSuffix(setting.Key, "+")
			if _, seen := merged[key]; !seen {
				order = append(order, key)
				merged[key] = nil
			}
			if adds {
				merged[key] = append(merged[key], setting.Values...)
			} else {
				merged[key] = setting.Values
			}
		}
	}
	result := make([]Setting, 0, len(order))
	for _, key := range order {
		result = append(result, Setting{key, merged[key]})
	}
	return result, nil
}

func configFiles(path string) ([]string, error) {
	var files []string
	_, missing := os.Stat(path)
	if missing == nil {
		files = append(files, path)
	}
	more, err := filepath.Glob(filepath.Join(path+".d", "*.yaml"))
	if err != nil {
		return nil, err
	}
	sort.Strings(more)
	files = append(files, more...)
	if len(files) == 0 {
		return nil, missing
	}
	return files, nil
}

func readFile(path string) ([]Setting, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var document yaml.Node
	if err := yaml.Unmarshal(raw, &document); err != nil {
		return nil, err
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, errors.New("a mapping of option names to values is expected")
	}
	var settings []Setting
	for i := 0; i+1 < len(root.Content); i += 2 {
		values, err := texts(root.Content[i+1])
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", root.Content[i].Value, err)
		}
		settings = append(settings, Setting{root.Content[i].Value, values})
	}
	return settings, nil
}

func texts(node *yaml.Node) ([]string, error) {
	switch node.Kind {
	case yaml.ScalarNode:
		if node.Tag == "!!null" {
			return []string{""}, nil
		}
		return []string{node.Value}, nil
	case yaml.AliasNode:
		return texts(node.Alias)
	case yaml.SequenceNode:
		values := []string{}
		for _, item := range node.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, fmt.Errorf("line %d: a list may hold single values only", item.Line)
			}
			values = append(values, item.Value)
		}
		return values, nil
	}
	return nil, fmt.Errorf("line %d: a single value or a list is expected", node.Line)
}
