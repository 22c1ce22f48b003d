package main

import (
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/hcl/v2"

	"github.com/stokehq/stoke/plan"
)

// logs is what TF_LOG and its kin ask for: what the engine does and what
// providers report, with times, and no values.
type logs struct {
	core, provider hclog.Logger
	file           io.Closer // nil: standard error
}

// openLogs reads TF_LOG, TF_LOG_CORE, TF_LOG_PROVIDER and TF_LOG_PATH. Values
// that cannot be parsed are reported and ignored.
func openLogs(st stage) (*logs, hcl.Diagnostics) {
	var diags hcl.Diagnostics
	level := func(name string) hclog.Level {
		text := strings.ToUpper(st.getenv(name))
		switch text {
		case "", "OFF":
			return hclog.Off
		case "JSON":
			return hclog.Trace
		}
		l := hclog.LevelFromString(text)
		if l == hclog.NoLevel {
			diags = append(diags, diagnostic(hcl.DiagWarning, "Unknown log level",
				"%s is %q; the levels are TRACE, DEBUG, INFO, WARN, ERROR, OFF and JSON. Everything is logged.", name, text))
			return hclog.Trace
		}
		return l
	}
	all := level("TF_LOG")
	one := func(name string) hclog.Level {
		if st.getenv(name) == "" {
			return all
		}
		return level(name)
	}
	core, provider := one("TF_LOG_CORE"), one("TF_LOG_PROVIDER")
	l := &logs{core: hclog.NewNullLogger(), provider: hclog.NewNullLogger()}
	if core == hclog.Off && provider == hclog.Off {
		return l, diags
	}
	var out io.Writer = st.err
	if path := st.getenv("TF_LOG_PATH"); path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			diags = append(diags, diagnostic(hcl.DiagWarning, "Log file cannot be opened", "%s. The log is written to "+
				"standard error.", err))
		} else {
			out, l.file = f, f
		}
	}
	logger := func(name string, level hclog.Level) hclog.Logger {
		return hclog.New(&hclog.LoggerOptions{
			Name: name, Level: level, Output: out, JSONFormat: strings.EqualFold(st.getenv("TF_LOG"), "json"),
		})
	}
	l.core, l.provider = logger("stoke", core), logger("provider", provider)
	return l, diags
}

// logStart logs which command runs. Arguments are left out: they may hold values
// of variables.
func (l *logs) logStart(args []string) {
	var command []string
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") {
			break
		}
		command = append(command, arg)
	}
	dir, _ := os.Getwd()
	l.core.Info("stoke", "version", version, "go", runtime.Version(), "command", strings.Join(command, " "), "dir", dir)
}

func (l *logs) close() {
	if l.file != nil {
		_ = l.file.Close() // it is a log
	}
}

// listen logs events on their way to who shows them.
func (l *logs) listen(next plan.Listener) plan.Listener {
	if l == nil || !l.core.IsError() && !l.provider.IsError() {
		return next
	}
	return func(e plan.Event) {
		l.event(e)
		if next != nil {
			next(e)
		}
	}
}

func (l *logs) event(e plan.Event) {
	fields := []any{"address", e.Addr.String()}
	if e.Deposed != "" {
		fields = append(fields, "deposed", e.Deposed)
	}
	switch e.Kind {
	case plan.RefreshStart, plan.ReadStart:
		l.core.Debug("reading", fields...)
	case plan.RefreshDone, plan.ReadDone:
		l.core.Debug("read", append(fields, "elapsed", e.Elapsed)...)
	case plan.ApplyStart:
		l.core.Debug("applying", append(fields, "action", actionWord(e.Action))...)
	case plan.ApplyDone:
		l.core.Debug("applied", append(fields, "action", actionWord(e.Action), "elapsed", e.Elapsed)...)
	case plan.ApplyFailed:
		l.core.Error("apply failed", append(fields, "action", actionWord(e.Action), "elapsed", e.Elapsed)...)
	case plan.ApplyProgress:
		if e.Progress.Line != "" {
			l.provider.Trace(e.Progress.Line, fields...)
			return
		}
		l.provider.Debug("progress", append(fields, "step", e.Progress.Step)...)
	case plan.Importing, plan.Settled:
		l.core.Info(e.Text, fields...)
	}
}

func actionWord(a plan.Action) string {
	switch a {
	case plan.Create:
		return "create"
	case plan.Update:
		return "update"
	case plan.Delete:
		return "delete"
	case plan.Read:
		return "read"
	}
	return "replace"
}
