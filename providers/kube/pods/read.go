package pods

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	core "k8s.io/api/core/v1"

	"github.com/stokehq/stoke/providers"
)

// longest is how long a line may be, in bytes; a longer one is cut into several.
const longest = 1 << 20

// source is the log of one life of a container.
type source struct {
	pod *core.Pod
	container
	previous bool // it is the log of the run before the present one
}

// cursor is how far a log was read. Lines carry the time at which they were
// written, in nanoseconds; requests to the API server are for lines since a
// second.
type cursor struct {
	last time.Time
	same int // lines of that very time
}

// open asks for a log from a cursor on.
func (s *Set) open(ctx context.Context, of source, follow bool, from cursor) (io.ReadCloser, error) {
	r := s.Client.REST().Get().AbsPath("/api/v1/namespaces", of.pod.Namespace, "pods", of.pod.Name, "log").
		Param("container", of.container.name).Param("timestamps", "true")
	if follow {
		r.Param("follow", "true")
	}
	if of.previous {
		r.Param("previous", "true")
	}
	if !from.last.IsZero() {
		r.Param("sinceTime", from.last.UTC().Truncate(time.Second).Format(time.RFC3339))
	}
	return r.Stream(ctx)
}

// read hands out the lines of a log from a cursor on, which it moves. whole asks
// for the last line as well where it has no end; without it such a line is left
// to whoever reads on, since the rest of it may be to come.
func (s *Set) read(ctx context.Context, of source, follow, whole bool, from *cursor, line func(providers.RunLine) error) error {
	body, err := s.open(ctx, of, follow, *from)
	if err != nil {
		return err
	}
	defer body.Close()
	in := bufio.NewReaderSize(body, 64<<10)
	skip := from.same
	since := from.last
	for {
		text, ended, err := oneLine(in)
		if ended || whole && text != "" && errors.Is(err, io.EOF) {
			at, said := stamped(text)
			switch {
			case !at.IsZero() && at.Before(since):
				// The API server only knows seconds: this line was returned before.
			case !at.IsZero() && at.Equal(since) && skip > 0:
				skip--
			default:
				from.pass(at)
				if err := line(providers.RunLine{Role: of.role, Time: at, Text: said}); err != nil {
					return err
				}
			}
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
	}
}

// pass moves the cursor behind a line.
func (c *cursor) pass(at time.Time) {
	switch {
	case at.IsZero():
	case at.Equal(c.last):
		c.same++
	default:
		c.last, c.same = at, 1
	}
}

// oneLine reads a line without its end. ended reports that the line has an end,
// or was cut for its length; else there is an error.
func oneLine(in *bufio.Reader) (text string, ended bool, err error) {
	var b strings.Builder
	for {
		part, err := in.ReadSlice('\n')
		b.Write(part)
		switch {
		case err == nil:
			return strings.TrimSuffix(b.String(), "\n"), true, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return b.String(), false, err
		case b.Len() >= longest:
			return b.String(), true, nil
		}
	}
}

// stamped takes a line apart into the time that it begins with and the rest.
func stamped(text string) (at time.Time, said string) {
	first, rest, _ := strings.Cut(text, " ")
	at, err := time.Parse(time.RFC3339Nano, first)
	if err != nil {
		return time.Time{}, text
	}
	return at, rest
}
