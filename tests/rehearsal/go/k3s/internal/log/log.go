// Package log writes lines in the form that k3s's own log has, so that whoever greps a journal for
// `level=fatal` finds the same thing here.
package log

import (
	"fmt"
	"os"
	"strconv"
	"time"
)

func line(level, format string, args ...any) {
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	fmt.Fprintf(os.Stderr, "time=%q level=%s msg=%s\n", time.Now().UTC().Format(time.RFC3339), level, strconv.Quote(message))
}

// Info tells what was done.
func Info(format string, args ...any) { line("info", format, args...) }

// Warn tells what was seen and is not as asked for.
func Warn(format string, args ...any) { line("warning", format, args...) }

// Fatal ends the process with code 1: systemd is to see a failure.
func Fatal(format string, args ...any) {
	line("fatal", format, args...)
	os.Exit(1)
}
