package main

import (
	"fmt"

	"gpunode.example/rehearsal/k3s/internal/token"
)

// runToken generates a password; the token of a running server is in server/token.
func runToken(args []string) error {
	if len(args) == 1 && args[0] == "generate" {
		password, err := token.Random()
		if err != nil {
			return err
		}
		fmt.Println(password)
		return nil
	}
	return fmt.Errorf("k3s token: only `generate` is carried by the rehearsal's stand-in for k3s; the join token is in %s/server/token", defaultDataDir)
}
