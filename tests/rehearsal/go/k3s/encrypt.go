package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// runEncrypt is `k3s secrets-encrypt status`.
func runEncrypt(args []string) error {
	if len(args) == 0 || args[0] != "status" {
		return errors.New("k3s secrets-encrypt: only `status` is carried by the rehearsal's stand-in for k3s")
	}
	dataDir, err := dataDirOf()
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(filepath.Join(dataDir, "server", "cred", "encryption-config.json"))
	if errors.Is(err, os.ErrNotExist) {
		fmt.Println("Encryption Status: Disabled, no configuration file found")
		return nil
	}
	if err != nil {
		return err
	}
	var config struct {
		Resources []struct {
			Providers []map[string]struct {
				Keys []struct {
					Name string `json:"name"`
				} `json:"keys"`
			} `json:"providers"`
		} `json:"resources"`
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		return err
	}
	kinds := map[string]string{"aescbc": "AES-CBC", "secretbox": "XSalsa20-POLY1305"}
	fmt.Print("Encryption Status: Enabled\nCurrent Rotation Stage: start\nServer Encryption Hashes: All hashes match\n\n")
	fmt.Print("Active  Key Type           Name\n------  --------           ----\n")
	for _, resource := range config.Resources {
		for _, provider := range resource.Providers {
			for kind, value := range provider {
				for _, key := range value.Keys {
					fmt.Printf(" *      %-17s  %s\n", kinds[kind], key.Name)
				}
			}
		}
	}
	return nil
}
