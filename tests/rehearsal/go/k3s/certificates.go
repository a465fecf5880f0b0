package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"gpunode.example/rehearsal/k3s/internal/flags"
	"gpunode.example/rehearsal/k3s/internal/log"
	"gpunode.example/rehearsal/k3s/internal/pki"
)

// services groups a server's certificates by the name that `certificate rotate --service` takes.
var services = map[string][]string{
	"admin":              {"server/tls/client-admin"},
	"api-server":         {"server/tls/client-kube-apiserver", "server/tls/serving-kube-apiserver"},
	"controller-manager": {"server/tls/client-controller", "server/tls/kube-controller-manager/kube-controller-manager"},
	"scheduler":          {"server/tls/client-scheduler", "server/tls/kube-scheduler/kube-scheduler"},
	"auth-proxy":         {"server/tls/client-auth-proxy"},
	"etcd":               {"server/tls/etcd/client", "server/tls/etcd/server-client", "server/tls/etcd/peer-server-client"},
	"k3s-controller":     {"server/tls/client-k3s-controller", "agent/client-k3s-controller"},
	"supervisor":         {"server/tls/client-supervisor"},
	"kubelet":            {"agent/client-kubelet", "agent/serving-kubelet"},
	"kube-proxy":         {"server/tls/client-kube-proxy", "agent/client-kube-proxy"},
}

// runCertificate is `k3s certificate check|rotate`.
func runCertificate(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("k3s certificate: check or rotate is expected")
	}
	set := flag.NewFlagSet("certificate", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	var chosen repeated
	set.Var(&chosen, "service", "services to act on")
	set.Var(&chosen, "s", "services to act on")
	output := set.String("output", "text", "text or table")
	set.StringVar(output, "o", "text", "text or table")
	dataDir := set.String("data-dir", "", "data folder")
	set.StringVar(dataDir, "d", "", "data folder")
	if err := set.Parse(args[1:]); err != nil {
		return err
	}
	if *dataDir == "" {
		options, err := flags.Parse(flags.Server, nil, os.Getenv)
		if err != nil {
			return err
		}
		*dataDir = options.Text("data-dir")
	}
	paths, err := certificatePaths(*dataDir, chosen)
	if err != nil {
		return err
	}
	switch args[0] {
	case "check":
		return checkCertificates(paths, *output)
	case "rotate":
		return rotateCertificates(*dataDir, paths)
	}
	return fmt.Errorf("k3s certificate %s is not carried by the rehearsal's stand-in for k3s: check and rotate are", args[0])
}

// repeated collects a repeatable option whose values may also be joined by commas.
type repeated []string

func (l *repeated) String() string { return strings.Join(*l, ",") }

func (l *repeated) Set(value string) error {
	*l = append(*l, strings.Split(value, ",")...)
	return nil
}

func certificatePaths(dataDir string, chosen []string) ([]string, error) {
	if len(chosen) == 0 {
		for name := range services {
			chosen = append(chosen, name)
		}
	}
	var paths []string
	for _, name := range chosen {
		group, ok := services[name]
		if !ok {
			return nil, fmt.Errorf("%s is not a recognized service", name)
		}
		for _, path := range group {
			path = filepath.Join(dataDir, path)
			if _, err := os.Stat(path + ".crt"); err == nil {
				paths = append(paths, path)
			}
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no certificates below %s: has k3s server run here? (on an agent kubelet renews its own, in agent/pki)", dataDir)
	}
	return slices.Sorted(slices.Values(paths)), nil
}

func checkCertificates(paths []string, output string) error {
	now := time.Now()
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 3, ' ', 0)
	if output == "table" {
		fmt.Fprintln(table, "FILENAME\tSUBJECT\tUSAGES\tEXPIRES\tRESIDUAL TIME\tSTATUS")
	}
	for _, path := range paths {
		raw, err := os.ReadFile(path + ".crt")
		if err != nil {
			return err
		}
		certs, err := pki.Parse(raw)
		if err != nil {
			return fmt.Errorf("%s.crt: %w", path, err)
		}
		cert, status := certs[0], "OK"
		switch {
		case now.After(cert.NotAfter):
			status = "EXPIRED"
		case now.Add(pki.RenewBefore).After(cert.NotAfter):
			status = "WARNING"
		}
		if output == "table" {
			fmt.Fprintf(table, "%s\tCN=%s\t%s\t%s\t%d days\t%s\n", filepath.Base(path)+".crt", cert.Subject.CommonName, pki.Usages(cert),
				cert.NotAfter.UTC().Format("Jan 02, 2006 15:04 MST"), int(cert.NotAfter.Sub(now).Hours()/24), status)
			continue
		}
		text := fmt.Sprintf("%s.crt: certificate CN=%s is ok, expires at %s", path, cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.RFC3339))
		switch status {
		case "OK":
			log.Info("%s", text)
		case "WARNING":
			log.Warn("%s.crt: certificate CN=%s will expire within 90 days at %s", path, cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.RFC3339))
		default:
			log.Warn("%s.crt: certificate CN=%s expired at %s", path, cert.Subject.CommonName, cert.NotAfter.UTC().Format(time.RFC3339))
		}
	}
	return table.Flush()
}

// rotateCertificates moves the certificates and keys away, so that the next start makes new ones.
func rotateCertificates(dataDir string, paths []string) error {
	backup := filepath.Join(dataDir, "server", fmt.Sprintf("tls-%d", time.Now().Unix()))
	for _, path := range paths {
		relative, err := filepath.Rel(dataDir, path)
		if err != nil {
			return err
		}
		for _, ending := range []string{".crt", ".key"} {
			kept := filepath.Join(backup, relative+ending)
			if err := os.MkdirAll(filepath.Dir(kept), 0o700); err != nil {
				return err
			}
			if err := os.Rename(path+ending, kept); err != nil {
				return err
			}
		}
		log.Info("Rotating certificate %s.crt", path)
	}
	log.Info("Successfully backed up certificates to %s, please restart k3s server or agent to rotate certificates", backup)
	return nil
}
