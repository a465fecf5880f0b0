// k3s is the rehearsal's stand-in for the one k3s binary: the real Kubernetes components, etcd and containerd, carried
// in this file and supervised by this program, behind the commands, files and addresses of k3s. See README.md.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"gpunode.example/rehearsal/k3s/internal/log"
)

// version and commit are set when linking.
var (
	version = "v0.0.0+unset"
	commit  = "stand-in"
)

// command is one subcommand: what it does with the words after its name.
type command struct {
	name string
	help string
	run  func(args []string) error
}

func commands() []command {
	return []command{
		{"server", "Run management server", runServer},
		{"agent", "Run node agent", runAgent},
		{"kubectl", "Run kubectl", runKubectl},
		{"crictl", "Run crictl", runCrictl},
		{"ctr", "Run ctr", runCtr},
		{"token", "Show the join token (generate)", runToken},
		{"etcd-snapshot", "Manage etcd snapshots (save, ls, delete, prune)", runSnapshot},
		{"secrets-encrypt", "Show the state of secrets encryption (status)", runEncrypt},
		{"certificate", "Manage K3s certificates (check, rotate)", runCertificate},
		{"check-config", "Not carried", notCarried("check-config")},
		{"completion", "Not carried", notCarried("completion")},
		{"etcdctl", "Not carried", notCarried("etcdctl")},
	}
}

func main() {
	// k3s answers under the names of the clients that it carries, too.
	switch name := filepath.Base(os.Args[0]); name {
	case "kubectl", "ctr", "crictl":
		dispatch(name, os.Args[1:])
		return
	}
	if len(os.Args) < 2 {
		usage()
		return
	}
	switch word := os.Args[1]; word {
	case "--version", "-v", "version":
		printVersion()
	case "--help", "-h", "help":
		usage()
	default:
		dispatch(word, os.Args[2:])
	}
}

func dispatch(name string, args []string) {
	for _, c := range commands() {
		if c.name == name {
			if err := c.run(args); err != nil {
				log.Fatal("%v", err)
			}
			return
		}
	}
	fmt.Fprintf(os.Stderr, "No help topic for '%s'\n", name)
	os.Exit(3)
}

func printVersion() {
	fmt.Printf("k3s version %s (%s)\n", version, commit)
	fmt.Printf("go version %s\n", runtime.Version())
	fmt.Println("This is the stand-in of the rehearsal, not a k3s release: real Kubernetes components, containerd, and etcd where k3s has sqlite (kine).")
}

func usage() {
	fmt.Println("NAME:\n   k3s - Kubernetes, but small and simple (stand-in of the rehearsal)\n\nUSAGE:\n   k3s [global options] command [command options]\n\nCOMMANDS:")
	for _, c := range commands() {
		fmt.Printf("   %-16s %s\n", c.name, c.help)
	}
}

func notCarried(name string) func([]string) error {
	return func([]string) error {
		return fmt.Errorf("k3s %s is not carried by the rehearsal's stand-in for k3s", name)
	}
}
