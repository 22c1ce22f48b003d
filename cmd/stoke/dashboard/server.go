package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Server is a dashboard of one Source.
type Server struct {
	source  Source
	guard   *guard
	port    int
	board   *board
	feeds   *feeds
	pages   *pages
	applies *applies
	surveys *surveys
	ended   <-chan struct{} // closed when the server ends: streams end then
}

// New returns the dashboard that answers on a port of this machine.
func New(source Source, port int) (*Server, error) {
	g := newGuard(port)
	p, err := parsePages(g.folder)
	if err != nil {
		return nil, err
	}
	return &Server{source: source, guard: g, port: port, board: newBoard(source), feeds: newFeeds(), pages: p,
		applies: newApplies(), surveys: newSurveys()}, nil
}

// Listen listens on loopback; port 0 is any free port.
func Listen(port int) (net.Listener, error) {
	return net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
}

// Link returns the link that opens the dashboard once.
func (s *Server) Link() string {
	return fmt.Sprintf("http://127.0.0.1:%d%s/login?token=%s", s.port, s.guard.folder, s.guard.token)
}

// Handler answers requests until ctx ends.
func (s *Server) Handler(ctx context.Context) http.Handler {
	s.ended = ctx.Done()
	mux := http.NewServeMux()
	mux.Handle("GET /{$}", http.RedirectHandler(s.guard.folder+"/runs", http.StatusSeeOther))
	mux.HandleFunc("GET /runs", s.showRuns)
	mux.HandleFunc("GET /run", s.showRun)
	mux.HandleFunc("GET /workers", s.showWorkers)
	mux.HandleFunc("GET /worker", s.showWorker)
	mux.HandleFunc("GET /compare", s.showCompare)
	mux.HandleFunc("GET /cluster", s.showCluster)
	mux.HandleFunc("GET /new", s.showForm)
	mux.HandleFunc("POST /new", s.showDraft)
	if s.source.MayApply() {
		mux.HandleFunc("GET /apply", s.showApply)
		mux.HandleFunc("POST /apply", s.beginApply)
		mux.HandleFunc("POST /apply/stop", s.stopApply)
		mux.HandleFunc("GET /live/apply", s.streamApply)
	}
	mux.HandleFunc("GET /data/series", s.sendSeries)
	mux.HandleFunc("GET /data/workers", s.sendWorkers)
	mux.HandleFunc("GET /data/ledger", s.sendLedger)
	mux.HandleFunc("GET /data/drift", s.sendDrift)
	mux.HandleFunc("GET /live/runs", s.streamRuns)
	mux.HandleFunc("GET /live/run", s.streamRun)
	mux.HandleFunc("GET /live/cluster", s.streamCluster)
	mux.HandleFunc("GET /live/workers", s.streamWorkers)
	mux.HandleFunc("GET /live/logs", s.streamLogs)
	mux.HandleFunc("GET /logs.txt", s.sendLogs)
	mux.HandleFunc("GET /download", s.sendArchive)
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	mux.Handle("GET /assets/", http.StripPrefix("/assets/", assetFiles()))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, http.StatusNotFound, "There is no such page", "The list of runs leads to all pages.")
	})
	return s.guard.protect(mux)
}

// Serve answers requests until ctx ends, and returns once all its work has ended.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler: s.Handler(ctx), ReadHeaderTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	var err error
	select {
	case <-ctx.Done():
		last, done := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
		defer done()
		if server.Shutdown(last) != nil {
			err = server.Close()
		}
		<-served
	case err = <-served:
	}
	s.Close()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// Close ends the reading of runs, lets an apply finish its steps, and waits for both.
func (s *Server) Close() {
	s.applies.close()
	s.surveys.close()
	s.board.close()
	s.feeds.close()
}
