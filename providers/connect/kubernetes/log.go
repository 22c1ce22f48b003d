package kubernetes

import (
	"context"
	"io"
	"strconv"
	"time"
)

// LogOptions say which lines of a container's log are wanted; zero values are
// all of them, without their times.
type LogOptions struct {
	Container  string
	Previous   bool      // those of the container before the present one
	Timestamps bool      // each line begins with its time (RFC 3339) and a space
	Since      time.Time // in whole seconds: the API keeps no parts of them
	Tail       int64     // the last lines; 0 = all
	Follow     bool      // also what is to come, until the container ends
}

// PodLog reads the log of a container, as its node keeps it.
func (c *Client) PodLog(ctx context.Context, namespace, pod string, o LogOptions) (io.ReadCloser, error) {
	request := c.REST().Get().AbsPath("/api/v1/namespaces", namespace, "pods", pod, "log").Param("container", o.Container)
	for name, wanted := range map[string]bool{"previous": o.Previous, "timestamps": o.Timestamps, "follow": o.Follow} {
		if wanted {
			request.Param(name, "true")
		}
	}
	if !o.Since.IsZero() {
		request.Param("sinceTime", o.Since.UTC().Format(time.RFC3339))
	}
	if o.Tail > 0 {
		request.Param("tailLines", strconv.FormatInt(o.Tail, 10))
	}
	return request.Stream(ctx)
}
