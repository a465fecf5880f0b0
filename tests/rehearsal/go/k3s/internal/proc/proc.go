// Package proc runs the components as child processes. In k3s most of them are goroutines of one process; here each is
// a process of its own, and the rules below make the whole behave as one: if one ends, k3s ends.
package proc

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// Child is a component to run.
type Child struct {
	Name string
	Path string
	Args []string
	// Env is added to the environment.
	Env []string
	// Log receives standard output and error; nil prefixes each line with the name and passes it to our standard error.
	Log io.Writer
}

// Group holds the children in the order of their start.
type Group struct {
	mu       sync.Mutex
	running  []*member
	stopping bool
	ended    chan error
}

type member struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}
}

// NewGroup returns an empty group.
func NewGroup() *Group { return &Group{ended: make(chan error, 1)} }

// Ended receives an error when a child ended that was not asked to.
func (g *Group) Ended() <-chan error { return g.ended }

// Start runs a child.
func (g *Group) Start(child Child) error {
	cmd := exec.Command(child.Path, child.Args...)
	cmd.Env = append(os.Environ(), child.Env...)
	// Were k3s itself killed, its children must not hold the ports and sockets that its next start needs.
	// Containers are not concerned: their shims are no children of these processes.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	output := child.Log
	if output == nil {
		output = prefixed(child.Name)
	}
	cmd.Stdout, cmd.Stderr = output, output
	m := &member{name: child.Name, cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		// The kernel sends Pdeathsig when the *thread* that forked ends, so this one has to stay.
		runtime.LockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		err = cmd.Wait()
		close(m.done)
		g.report(m, err)
	}()
	if err := <-started; err != nil {
		return fmt.Errorf("starting %s: %w", child.Name, err)
	}
	g.mu.Lock()
	g.running = append(g.running, m)
	g.mu.Unlock()
	return nil
}

func (g *Group) report(m *member, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopping {
		return
	}
	if err == nil {
		err = fmt.Errorf("exit status 0")
	}
	select {
	case g.ended <- fmt.Errorf("%s exited: %w; its last lines are above", m.name, err):
	default:
	}
}

// patience is how long a child may take to end before it is killed. The API server would wait a minute for watches
// of other nodes; its data is safe in etcd, which gets the time that it needs.
var patience = map[string]time.Duration{"kube-apiserver": 2 * time.Second, "etcd": 15 * time.Second}

// Stop ends the children: all that talk to the API server at once, then it, and last what it needs.
func (g *Group) Stop() {
	g.mu.Lock()
	g.stopping = true
	members := g.running
	g.mu.Unlock()
	var stages [3][]*member
	for _, m := range members {
		switch m.name {
		case "etcd", "containerd":
			stages[2] = append(stages[2], m)
		case "kube-apiserver":
			stages[1] = append(stages[1], m)
		default:
			stages[0] = append(stages[0], m)
		}
	}
	for _, stage := range stages {
		end(stage)
	}
}

func end(members []*member) {
	for _, m := range members {
		m.cmd.Process.Signal(syscall.SIGTERM)
	}
	begun := time.Now()
	for _, m := range members {
		limit := 5 * time.Second
		if own, ok := patience[m.name]; ok {
			limit = own
		}
		select {
		case <-m.done:
		case <-time.After(limit - time.Since(begun)):
			m.cmd.Process.Kill()
			<-m.done
		}
	}
}

// prefixed returns a writer whose lines appear in the journal with the component's name before them.
func prefixed(name string) io.Writer {
	reader, writer, err := os.Pipe()
	if err != nil {
		return os.Stderr
	}
	go func() {
		lines := bufio.NewReaderSize(reader, 64<<10)
		for {
			text, err := lines.ReadString('\n')
			if text != "" {
				if text[len(text)-1] != '\n' {
					text += "\n"
				}
				io.WriteString(os.Stderr, name+": "+text)
			}
			if err != nil {
				return
			}
		}
	}()
	return writer
}
