package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"gpunode.example/rehearsal/k3s/internal/agent"
	"gpunode.example/rehearsal/k3s/internal/flags"
	"gpunode.example/rehearsal/k3s/internal/log"
	"gpunode.example/rehearsal/k3s/internal/payload"
	"gpunode.example/rehearsal/k3s/internal/server"
)

const defaultDataDir = "/var/lib/rancher/k3s"

// start reads options, unpacks the components, and puts them on the PATH, first as k3s does.
func start(on flags.Command, args []string) (*flags.Options, string, error) {
	options, err := flags.Parse(on, args, os.Getenv)
	if err != nil {
		return nil, "", err
	}
	if os.Geteuid() != 0 {
		return nil, "", errors.New("must run as root unless --rootless is specified (which the rehearsal's stand-in for k3s does not support)")
	}
	for _, warning := range options.Warnings {
		log.Warn("%s", warning)
	}
	log.Info("Starting k3s %s (%s): the stand-in of the rehearsal", version, commit)
	binDir, err := unpack(options.Text("data-dir"))
	if err != nil {
		return nil, "", err
	}
	return options, binDir, os.Setenv("PATH", binDir+":"+os.Getenv("PATH"))
}

// unpack returns the folder of the components.
func unpack(dataDir string) (string, error) {
	program, err := os.Executable()
	if err != nil {
		return "", err
	}
	return payload.Ensure(program, filepath.Join(dataDir, "data"))
}

func untilSignal() (context.Context, context.CancelFunc) {
	return signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
}

func runServer(args []string) error {
	options, binDir, err := start(flags.Server, args)
	if err != nil {
		return err
	}
	s, err := server.New(options, binDir)
	if err != nil {
		return err
	}
	ctx, stop := untilSignal()
	defer stop()
	err = s.Run(ctx)
	if errors.Is(err, server.ErrReset) {
		// k3s ends with success here, so that a script can go on to the normal start.
		log.Info("%v. Backup and delete ${datadir}/server/db on each peer etcd server and rejoin the nodes", err)
		return nil
	}
	return err
}

func runAgent(args []string) error {
	options, binDir, err := start(flags.Agent, args)
	if err != nil {
		return err
	}
	a, err := agent.New(options, binDir)
	if err != nil {
		return err
	}
	ctx, stop := untilSignal()
	defer stop()
	return a.Run(ctx)
}

// component finds a client program without the rights that a server has: one that root unpacked, else a copy in the
// user's home, as k3s does.
func component(name string) (string, error) {
	dataDir := defaultDataDir
	if given := os.Getenv("K3S_DATA_DIR"); given != "" {
		dataDir = given
	}
	binDir, err := unpack(dataDir)
	if errors.Is(err, os.ErrPermission) {
		home, homeErr := os.UserHomeDir()
		if homeErr != nil {
			return "", homeErr
		}
		binDir, err = unpack(filepath.Join(home, ".rancher", "k3s"))
	}
	if err != nil {
		return "", err
	}
	return filepath.Join(binDir, name), nil
}

// become replaces this process by a component.
func become(name string, args []string, env ...string) error {
	path, err := component(name)
	if err != nil {
		return err
	}
	if err := syscall.Exec(path, append([]string{name}, args...), append(os.Environ(), env...)); err != nil {
		return fmt.Errorf("running %s: %w", path, err)
	}
	return nil
}
