package dashboard

import (
	"archive/zip"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"github.com/stokehq/stoke/providers"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// fileName returns a text with only those characters that every system allows in
// the name of a file.
func fileName(text string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, text), "._")
}

// sendArchive answers with all of a run in one file.
func (s *Server) sendArchive(w http.ResponseWriter, r *http.Request) {
	one, ok := s.findRun(w, r)
	if !ok {
		return
	}
	base := fileName(one.Address)
	w.Header().Set("Content-Type", "application/zip")
	w.Header().Set("Content-Disposition", fmt.Sprintf(`attachment; filename="%s.zip"`, base))
	z := zip.NewWriter(w)
	if err := writeArchive(r.Context(), z, one); err != nil {
		if f, e := z.Create("INCOMPLETE.txt"); e == nil {
			fmt.Fprintf(f, "This archive is not complete: %s\n", cleanText(err.Error(), longestText, true))
		}
	}
	z.Close() //nolint:errcheck // the browser has left
}

// writeArchive writes the parts of a run.
func writeArchive(ctx context.Context, z *zip.Writer, one row) error {
	status := one.status
	for _, part := range []struct {
		name  string
		write func(io.Writer) error
	}{
		{"configuration.json", func(w io.Writer) error { return writeJSON(w, one.Configuration) }},
		{"status.json", func(w io.Writer) error { return writeJSON(w, status) }},
		{"metrics.json", func(w io.Writer) error {
			return one.run.Metrics(ctx, false, func(e providers.RunEvent) error {
				_, err := w.Write(append(slices.Clip([]byte(e.JSON)), '\n'))
				return err
			})
		}},
		{"metrics.csv", func(w io.Writer) error { return writeCSV(ctx, w, one.run) }},
	} {
		if err := add(z, part.name, part.write); err != nil {
			return err
		}
	}
	return writeLogs(ctx, z, one)
}

// add adds a file to an archive.
func add(z *zip.Writer, name string, write func(io.Writer) error) error {
	w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate, Modified: time.Now()})
	if err == nil {
		err = write(w)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	return nil
}

func writeJSON(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// writeCSV writes the rows of stoke metrics -csv.
func writeCSV(ctx context.Context, w io.Writer, run providers.Run) error {
	out := csv.NewWriter(w)
	out.Write([]string{"number", "time", "type", "epoch", "step", "name", "value"}) //nolint:errcheck // see Error
	err := run.Metrics(ctx, false, func(e providers.RunEvent) error {
		line := []string{strconv.FormatInt(e.Number, 10), e.Time.UTC().Format(time.RFC3339Nano), name(e.Type),
			strconv.Itoa(e.Epoch), strconv.FormatInt(e.Step, 10), "", ""}
		for _, key := range slices.Sorted(maps.Keys(e.Values)) {
			line[5], line[6] = name(key), strconv.FormatFloat(e.Values[key], 'g', -1, 64)
			out.Write(line) //nolint:errcheck // see Error
		}
		if len(e.Values) == 0 {
			out.Write(line) //nolint:errcheck // see Error
		}
		return out.Error()
	})
	out.Flush()
	if err == nil {
		err = out.Error()
	}
	return err
}

// writeLogs writes a file for each role that the status lists, and one file with the
// lines of all roles and of a program's ranks, in the order of time.
func writeLogs(ctx context.Context, z *zip.Writer, one row) error {
	var known []string
	for i := range one.status.Roles {
		known = append(known, one.status.Roles[i].Name)
	}
	for _, role := range append(slices.Clone(known), "") {
		file := "logs/all.log"
		if role != "" {
			file = "logs/" + fileName(role) + ".log"
		}
		err := add(z, file, func(w io.Writer) error {
			return one.run.Logs(ctx, providers.RunLogs{Role: role}, func(line providers.RunLine) error {
				_, err := fmt.Fprintf(w, "%s\t%s\t%s\n", name(line.Role), name(line.Stream), cleanText(line.Text, 1<<20, false))
				return err
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}
