package kubetest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// idle is how long a stream may say nothing; kubelets have four hours.
const idle = 4 * time.Hour

// routes are those of the kubelet's API that API servers use,
// https://github.com/kubernetes/kubernetes/blob/master/pkg/kubelet/server/server.go
func (k *Kubelet) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.serveLogs)
	for _, method := range []string{"GET", "POST"} {
		mux.HandleFunc(method+" /exec/{namespace}/{pod}/{container}", k.serveExec)
		mux.HandleFunc(method+" /portForward/{namespace}/{pod}", k.servePorts)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if who := r.TLS.PeerCertificates[0].Subject.CommonName; who != kubeletClient {
			http.Error(w, fmt.Sprintf("Forbidden (user=%s)", who), http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// logOptions are the parameters of a log.
type logOptions struct {
	follow, previous, timestamps bool
	since                        time.Time
	tail, limit                  int64 // -1: all
}

// readLogOptions refuses what a kubelet refuses, and what it does not know.
func readLogOptions(q url.Values) (o logOptions, err error) {
	o.tail, o.limit = -1, -1
	for name, values := range q {
		text := values[0]
		switch name {
		case "follow":
			o.follow, err = flag(text)
		case "previous":
			o.previous, err = flag(text)
		case "timestamps":
			o.timestamps, err = flag(text)
		case "sinceTime":
			o.since, err = time.Parse(time.RFC3339, text)
		case "sinceSeconds":
			var seconds int64
			if seconds, err = strconv.ParseInt(text, 10, 64); err == nil && seconds < 1 {
				err = fmt.Errorf("sinceSeconds must be greater than 0")
			}
			o.since = time.Now().Add(-time.Duration(seconds) * time.Second)
		case "tailLines":
			o.tail, err = strconv.ParseInt(text, 10, 64)
		case "limitBytes":
			if o.limit, err = strconv.ParseInt(text, 10, 64); err == nil && o.limit < 1 {
				err = fmt.Errorf("limitBytes must be greater than 0")
			}
		default:
			err = fmt.Errorf("%s is not a parameter of logs", name)
		}
		if err != nil {
			return o, fmt.Errorf("parameter %s: %w", name, err)
		}
	}
	if q.Has("sinceTime") && q.Has("sinceSeconds") {
		return o, fmt.Errorf("at most one of sinceTime or sinceSeconds may be specified")
	}
	return o, nil
}

func (k *Kubelet) serveLogs(w http.ResponseWriter, r *http.Request) {
	o, err := readLogOptions(r.URL.Query())
	if err != nil {
		http.Error(w, `{"message": "Invalid request."}`+err.Error(), http.StatusUnprocessableEntity)
		return
	}
	namespace, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	k.mu.Lock()
	p := k.pod(namespace, name)
	var c *kubeletContainer
	if p != nil {
		c = p.container(container)
	}
	var of *life
	switch {
	case p == nil:
		k.mu.Unlock()
		http.Error(w, fmt.Sprintf("pod %q does not exist", name), http.StatusNotFound)
		return
	case c == nil:
		k.mu.Unlock()
		http.Error(w, fmt.Sprintf("container %q not found in pod %q", container, name), http.StatusNotFound)
		return
	}
	of, err = c.log(o.previous, name)
	k.mu.Unlock()
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	k.writeLog(w, r, of, o)
}

// log is the life whose log is meant, as the kubelet chooses it.
func (c *kubeletContainer) log(previous bool, pod string) (*life, error) {
	switch n := len(c.lives); {
	case previous && (n < 1 || n < 2 && c.waiting == nil):
		return nil, fmt.Errorf("previous terminated container %q in pod %q not found", c.name, pod)
	case previous && c.waiting == nil:
		return c.lives[n-2], nil
	case n > 0:
		return c.lives[n-1], nil
	}
	return nil, fmt.Errorf("container %q in pod %q is waiting to start: %s", c.name, pod, c.waiting.Reason)
}

// writeLog writes the log so far, and then new lines until that life ends.
func (k *Kubelet) writeLog(w http.ResponseWriter, r *http.Request, of *life, o logOptions) {
	w.Header().Set("Content-Type", "text/plain")
	flush := http.NewResponseController(w).Flush
	begin, written := 0, int64(0)
	for first := true; ; first = false {
		k.mu.Lock()
		lines, ended, changed := slices.Clone(of.lines[begin:]), of.end != nil, k.changed
		k.mu.Unlock()
		begin += len(lines)
		lines = slices.DeleteFunc(lines, func(l logLine) bool { return l.at.Before(o.since) })
		if first && o.tail >= 0 && int64(len(lines)) > o.tail {
			lines = lines[int64(len(lines))-o.tail:]
		}
		for _, l := range lines {
			text := l.text + "\n"
			if o.timestamps {
				text = l.stamp() + " " + text
			}
			if o.limit >= 0 && written+int64(len(text)) > o.limit {
				_, _ = w.Write([]byte(text[:o.limit-written]))
				return
			}
			n, err := w.Write([]byte(text))
			if err != nil {
				return
			}
			written += int64(n)
		}
		if flush() != nil || !o.follow || ended {
			return
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

func (k *Kubelet) serveExec(w http.ResponseWriter, r *http.Request) {
	o, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	name, container := r.PathValue("pod"), r.PathValue("container")
	k.mu.Lock()
	p := k.pod(r.PathValue("namespace"), name)
	var c *kubeletContainer
	running := false
	if p != nil {
		c = p.container(container)
		running = c != nil && c.waiting == nil && c.last() != nil && c.last().end == nil
	}
	k.mu.Unlock()
	command := r.URL.Query()["command"]
	switch {
	case p == nil:
		http.Error(w, "pod does not exist", http.StatusNotFound)
	case !running:
		http.Error(w, fmt.Sprintf("container not found (%q)", container), http.StatusInternalServerError)
	case len(command) == 0:
		http.Error(w, "you must specify at least 1 command", http.StatusBadRequest)
	default:
		remotecommand.ServeExec(w, r, processes{}, name, string(p.UID), container, command, o, idle, patience, remotecommand.SupportedStreamingProtocols)
	}
}

func (k *Kubelet) servePorts(w http.ResponseWriter, r *http.Request) {
	o, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	k.mu.Lock()
	p := k.pod(r.PathValue("namespace"), r.PathValue("pod"))
	k.mu.Unlock()
	if p == nil {
		http.Error(w, "pod does not exist", http.StatusNotFound)
		return
	}
	portforward.ServePortForward(w, r, processes{}, p.Name, string(p.UID), o, idle, patience, portforward.SupportedProtocols)
}
