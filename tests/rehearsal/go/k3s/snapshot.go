package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"gpunode.example/rehearsal/k3s/internal/flags"
	"gpunode.example/rehearsal/k3s/internal/log"
	"gpunode.example/rehearsal/k3s/internal/server"
	"gpunode.example/rehearsal/k3s/internal/snapshot"
)

// runSnapshot is `k3s etcd-snapshot`; without a subcommand it saves.
func runSnapshot(args []string) error {
	action := "save"
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		action, args = args[0], args[1:]
	}
	set := flag.NewFlagSet("etcd-snapshot", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	name := set.String("name", "", "base name")
	folder := set.String("dir", "", "folder of the snapshots")
	set.StringVar(folder, "etcd-snapshot-dir", "", "folder of the snapshots")
	retention := set.Int("snapshot-retention", 0, "number to keep")
	set.IntVar(retention, "etcd-snapshot-retention", 0, "number to keep")
	output := set.String("output", "table", "table")
	set.StringVar(output, "o", "table", "table")
	dataDir := set.String("data-dir", "", "data folder")
	if err := set.Parse(args); err != nil {
		return err
	}
	// The server's own settings count as far as the command line is silent.
	options, err := flags.Parse(flags.Server, nil, os.Getenv)
	if err != nil {
		return err
	}
	fallback(name, options.Text("etcd-snapshot-name"), "on-demand", "etcd-snapshot")
	fallback(dataDir, options.Text("data-dir"), "", "")
	fallback(folder, options.Text("etcd-snapshot-dir"), filepath.Join(*dataDir, "server", "db", "snapshots"), "")
	if *retention == 0 {
		*retention = options.Number("etcd-snapshot-retention")
	}
	switch action {
	case "save":
		return save(*dataDir, *folder, *name, *retention)
	case "ls", "list":
		return list(*folder, *output)
	case "delete":
		if set.NArg() == 0 {
			return fmt.Errorf("no snapshots given for removal")
		}
		return snapshot.Delete(*folder, set.Args())
	case "prune":
		return prune(*folder, *name, *retention)
	}
	return fmt.Errorf("k3s etcd-snapshot %s is not known: save, ls, delete or prune", action)
}

// fallback fills an option that was not given: with the configured value, unless that is only a default.
func fallback(option *string, configured, otherwise, unset string) {
	switch {
	case *option != "":
	case configured != unset || otherwise == "":
		*option = configured
	default:
		*option = otherwise
	}
}

func save(dataDir, folder, name string, retention int) error {
	client, err := server.EtcdHTTP(filepath.Join(dataDir, "server", "tls", "etcd"))
	if err != nil {
		return fmt.Errorf("etcd-snapshot save needs a server on this machine: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	path, err := snapshot.Save(ctx, client, server.EtcdURL, folder, fmt.Sprintf("%s-%s-%d", name, strings.ToLower(host), time.Now().Unix()))
	if err != nil {
		return err
	}
	log.Info("Snapshot %s saved.", filepath.Base(path))
	return prune(folder, name, retention)
}

func prune(folder, name string, retention int) error {
	removed, err := snapshot.Prune(folder, name, retention)
	for _, path := range removed {
		log.Info("Removed snapshot %s", path)
	}
	return err
}

func list(folder, output string) error {
	if output != "table" {
		return fmt.Errorf("k3s etcd-snapshot ls: output %q is not carried by the rehearsal's stand-in for k3s (table is)", output)
	}
	found, err := snapshot.List(folder)
	if err != nil {
		return err
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', 0)
	fmt.Fprintln(table, "Name\tLocation\tSize\tCreated")
	for _, s := range found {
		fmt.Fprintf(table, "%s\tfile://%s\t%d\t%s\n", s.Name, s.Path, s.Size, s.Created.UTC().Format(time.RFC3339))
	}
	return table.Flush()
}

// dataDirOf is the data folder that the server on this machine is configured with.
func dataDirOf() (string, error) {
	options, err := flags.Parse(flags.Server, nil, os.Getenv)
	if err != nil {
		return "", err
	}
	return options.Text("data-dir"), nil
}
