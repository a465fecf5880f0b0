package containerd

import "os/exec"

// Runtime is a handler beside runc.
type Runtime struct {
	RuntimeType string
	BinaryName  string
}

// ociRuntimes are handlers whose program is a command line OCI runtime, by the name of that program.
var ociRuntimes = map[string]string{
	"crun":                "crun",
	"nvidia":              "nvidia-container-runtime",
	"nvidia-experimental": "nvidia-container-runtime-experimental",
	"nvidia-cdi":          "nvidia-container-runtime.cdi",
}

// shims are handlers with a containerd shim of their own.
var shims = []string{"lunatic", "slight", "spin", "wws", "wasmedge", "wasmer", "wasmtime"}

// FindRuntimes returns the handlers whose programs are on the PATH now. That is the only moment at which k3s looks:
// a toolkit that is installed later is not seen before the next start.
func FindRuntimes() map[string]Runtime {
	found := map[string]Runtime{}
	for handler, program := range ociRuntimes {
		if path, err := exec.LookPath(program); err == nil {
			found[handler] = Runtime{RuntimeType: "io.containerd.runc.v2", BinaryName: path}
		}
	}
	for _, handler := range shims {
		if path, err := exec.LookPath("containerd-shim-" + handler + "-v1"); err == nil {
			found[handler] = Runtime{RuntimeType: path}
		}
	}
	return found
}
