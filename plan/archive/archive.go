package archive

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stokehq/stoke/providers"
)

// Content is a run, with the facts that the run itself does not have.
type Content struct {
	Name          string // address or id
	Run           providers.Run
	Configuration map[string]string   // arguments by path
	Clean         func(string) string // removes secrets from a text
}

// supervisor is the role that owns the processes of a run of this machine.
const supervisor = "supervisor"

// Names of the entries of an archive; logs are below the folder logs.
const (
	statusEntry        = "status.json"
	configurationEntry = "configuration.json"
	linesEntry         = "metrics.jsonl"
	valuesEntry        = "metrics.csv"
)

// Create writes an archive to a file that is whole or absent. An existing file is
// replaced only if replace is true; otherwise Create returns os.ErrExist.
func Create(ctx context.Context, path string, replace bool, c Content) (err error) {
	if _, err := os.Lstat(path); err == nil && !replace {
		return os.ErrExist
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".stoke-*.zip")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, removeIfThere(f.Name())) }()
	if err := errors.Join(Write(ctx, f, c), f.Sync(), f.Close()); err != nil {
		return err
	}
	if !replace {
		// A link never replaces a file. Some file systems have no links.
		if err := os.Link(f.Name(), path); err == nil || errors.Is(err, os.ErrExist) {
			return err
		}
	}
	return os.Rename(f.Name(), path)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Write writes an archive.
func Write(ctx context.Context, to io.Writer, c Content) error {
	is, err := c.Run.Status(ctx)
	if err != nil {
		return err
	}
	w := &writer{Writer: zip.NewWriter(to), Content: c, now: time.Now()}
	if err := w.addJSON(statusEntry, struct {
		Address string `json:"address"`
		providers.RunStatus
	}{c.Name, is}); err != nil {
		return err
	}
	if err := w.addJSON(configurationEntry, c.Configuration); err != nil {
		return err
	}
	if err := w.addMetrics(ctx); err != nil {
		return err
	}
	if err := w.addLogs(ctx, is); err != nil {
		return err
	}
	return w.Close()
}

type writer struct {
	*zip.Writer
	Content
	now  time.Time
	used []string // names of logs
}

func (w *writer) add(name string) (io.Writer, error) {
	return w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: w.now})
}

func (w *writer) addJSON(name string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	to, err := w.add(name)
	if err == nil {
		_, err = io.WriteString(to, w.Clean(string(text))+"\n")
	}
	return err
}

// addMetrics adds the events in both forms. An archive has one entry after the other:
// the second form is in a temporary file until the first one is complete.
func (w *writer) addMetrics(ctx context.Context) (err error) {
	spare, err := os.CreateTemp("", "stoke-metrics-*.csv")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, spare.Close(), os.Remove(spare.Name())) }()
	values := &buffered{w: spare}
	values.add(Header())
	lines, err := w.add(linesEntry)
	if err != nil {
		return err
	}
	if err := w.Run.Metrics(ctx, providers.RunMetrics{}, func(e providers.RunEvent) error {
		values.add(w.Clean(Rows(e)))
		_, err := io.WriteString(lines, w.Clean(string(e.JSON))+"\n")
		return errors.Join(err, values.err)
	}); err != nil {
		return fmt.Errorf("read the metrics: %w", err)
	}
	if err := values.flush(); err != nil {
		return err
	}
	if _, err := spare.Seek(0, io.SeekStart); err != nil {
		return err
	}
	to, err := w.add(valuesEntry)
	if err == nil {
		_, err = io.Copy(to, spare)
	}
	return err
}

// addLogs adds one file for each role that has written something. Where the logs of a
// role cannot be read any further, its file ends with the reason.
func (w *writer) addLogs(ctx context.Context, is providers.RunStatus) error {
	roles := []string{}
	for _, role := range is.Roles {
		if !slices.Contains(roles, role.Name) {
			roles = append(roles, role.Name)
		}
	}
	if is.Trains { // a run of this machine has one, which no status lists
		roles = append(roles, supervisor)
	}
	for _, role := range roles {
		if err := w.addLog(ctx, role); err != nil {
			return fmt.Errorf("read the logs of %s: %w", role, err)
		}
	}
	return nil
}

func (w *writer) addLog(ctx context.Context, role string) error {
	var to io.Writer
	var broken error // the archive, not the logs
	write := func(text string) error {
		if to == nil {
			if to, broken = w.add("logs/" + w.fileName(role) + ".log"); broken != nil {
				return broken
			}
		}
		_, broken = io.WriteString(to, w.Clean(text)+"\n")
		return broken
	}
	err := w.Run.Logs(ctx, providers.RunLogs{Role: role}, func(line providers.RunLine) error {
		if line.Role != role { // a rank of the role's program
			return write(line.Role + " | " + line.Text)
		}
		return write(line.Text)
	})
	switch {
	case broken != nil || ctx.Err() != nil:
		return errors.Join(broken, ctx.Err())
	case err != nil && (role != supervisor || to != nil):
		return write(fmt.Sprintf("(these logs cannot be read: %s)", err))
	}
	return nil
}

// fileName returns a name that no other role of the archive has and that every file
// system takes.
func (w *writer) fileName(role string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, role)
	name = name[:min(len(name), 100)]
	for i, base := 2, name; name == "" || slices.Contains(w.used, name); i++ {
		name = fmt.Sprintf("%s-%d", base, i)
	}
	w.used = append(w.used, name)
	return name
}
