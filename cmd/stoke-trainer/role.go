package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stokehq/stoke/runtime/certificate"
	"github.com/stokehq/stoke/runtime/gpu/probe"
	"github.com/stokehq/stoke/runtime/run"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
	"github.com/stokehq/stoke/runtime/worker"
)

// role is what every role of a run starts with: all of it is given, nothing is
// looked for.
type role struct {
	specFile, tokenFile string
	certificateFile     string
	data, state         string
	index, firstIndex   int
	threads             int
	cores               int // that it may use
	supervised          bool
	listen, listenAPI   string
	address             string // host of listen, for the other workers
	listenAlive         string
	coordinator         string
	servers             []string
	checkpoints         string
	name, outcome       string
	declared            bool   // in the file outcome
	metrics             string // "-": standard output
	control             *line  // to the supervisor
	life                life
	linger              time.Duration
	accounts            string
	patience            time.Duration
	leaseTimeout        time.Duration
	tee                 bool                   // an agent's ranks
	code                string                 // the coordinator's folder of parts of the program's code
	api                 string                 // of the coordinator
	usageInterval       time.Duration          // between two samples
	spent               worker.Spent           // of a worker
	gpus                *probe.Follower        // nil: this process does not watch GPUs
	waits               atomic.Pointer[string] // of a worker, for a GPU; nil: it does not wait
	logs                string                 // of an agent
	orphaned            atomic.Pointer[func()] // is called before the process ends without its supervisor; nil: nothing is

	folder run.Folder // of its own: state
	spec   spec.Spec
	known  wire.Credentials
	log    *slog.Logger
}

// Environment that stands in for flags. A flag that is given counts.
const (
	environment = "STOKE_" // and a flag's name: STOKE_COORDINATOR, STOKE_TOKEN_FILE
	specText    = "STOKE_SPEC"
	tokenText   = "STOKE_TOKEN" // a flag would show it to everybody on the machine
	certText    = "STOKE_CERTIFICATE"
)

// roleCommand makes the command of one role.
func roleCommand(use, short string, flags func(*role, *pflag.FlagSet), do func(ctx context.Context, r *role) error) *cobra.Command {
	r := new(role)
	cmd := &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		Long: short + ".\n\nFlags that are not given are read from the environment: STOKE_ and the flag's name, as in\n" +
			"STOKE_COORDINATOR. The specification may be in STOKE_SPEC itself, as JSON, and the run's token in STOKE_TOKEN.\n\n" + ends(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := fromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			if err := r.open(); err != nil {
				return err
			}
			if r.supervised {
				go r.exitWithSupervisor() // as long as the process
			}
			defer r.reportUsage(cmd.Context(), cmd.Name())()
			return do(cmd.Context(), r)
		},
	}
	f := cmd.Flags()
	f.StringVar(&r.specFile, "spec", "", "`FILE` of the run's specification; or STOKE_SPEC")
	f.StringVar(&r.tokenFile, "token-file", "", "`FILE` of the run's token; or STOKE_TOKEN")
	f.StringVar(&r.certificateFile, "certificate-file", "", "`FILE` (PEM) of the run's own certificate, with its key where the process listens; or STOKE_CERTIFICATE. Without it, connections stay on loopback")
	f.IntVar(&r.threads, "threads", 0, "threads that the process computes with; 0 = all that it may use")
	f.StringVar(&r.listenAlive, "listen-alive", "",
		"`ADDRESS` for probes, host:port: a process that works answers GET / by HTTP, without a token; default: none")
	f.BoolVar(&r.supervised, "supervised", false, "started by supervise: end with it, use the ports it hands over, share the machine")
	f.DurationVar(&r.usageInterval, "usage-interval", sampleTime, "time between two samples of the usage of this process")
	if err := f.MarkHidden("usage-interval"); err != nil {
		panic(err) // the flag was just defined
	}
	flags(r, f)
	return cmd
}

// fromEnvironment sets the flags that were not given.
func fromEnvironment(flags *pflag.FlagSet) error {
	var errs []error
	flags.VisitAll(func(f *pflag.Flag) {
		name := environment + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
		value, ok := os.LookupEnv(name)
		if !ok || f.Changed || name == specText || f.Name == "help" {
			return
		}
		if err := flags.Set(f.Name, value); err != nil {
			errs = append(errs, badUsage("%s: %w", name, err))
		}
	})
	return errors.Join(errs...)
}

// exitWithSupervisor ends the process when its standard input ends: only the
// supervisor holds the other end of that pipe.
func (r *role) exitWithSupervisor() {
	io.Copy(io.Discard, os.Stdin) // whatever ends it, the supervisor is gone
	if end := r.orphaned.Load(); end != nil {
		(*end)()
	}
	os.Exit(int(spec.EndNoCoordinator))
}

func (r *role) open() error {
	r.log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	r.cores = runtime.GOMAXPROCS(0)
	if err := r.readSpec(); err != nil {
		return err
	}
	err := r.life.serve(r.listenAlive, r.log)
	if err != nil {
		return badUsage("--listen-alive: %w", err)
	}
	r.known.Version = version
	if r.known.Token, err = r.readToken(); err != nil {
		return usageError{err}
	}
	if err := r.readCertificate(); err != nil {
		return usageError{err}
	}
	if r.data != "" {
		if r.spec.Dataset.Path, err = filepath.Abs(r.data); err != nil {
			return err
		}
	}
	if r.state != "" {
		path, err := r.makeFolder(r.state)
		if err != nil {
			return badUsage("folder of its own: %w", err)
		}
		r.folder = run.Folder(path)
	}
	switch {
	case r.usageInterval <= 0:
		return badUsage("--usage-interval is %v: it must be above 0", r.usageInterval)
	case r.threads < 0:
		return badUsage("--threads is %d: it must not be negative", r.threads)
	case r.threads > 0:
		runtime.GOMAXPROCS(r.threads)
		r.cores = r.threads
	}
	return nil
}

// makeFolder makes a folder that is not there, and returns its absolute path. In a
// run's folder, its launcher has made all of them: if one is gone, so is the run.
func (r *role) makeFolder(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err == nil && !r.supervised {
		err = os.MkdirAll(path, 0o700)
	}
	return path, err
}

// limitProcs lets the process run on so many cores, where roles share the machine: on
// more than its work fills, Go's scheduler keeps waking threads that find
// nothing to do, and takes the cores from the other roles for that.
func (r *role) limitProcs(cores int) {
	if cores = min(cores, r.cores); r.supervised && cores != runtime.GOMAXPROCS(0) {
		runtime.GOMAXPROCS(cores)
	}
}

func (r *role) readSpec() error {
	if r.specFile != "" {
		var err error
		if r.spec, err = run.ReadSpec(r.specFile); err != nil {
			return usageError{err}
		}
		return nil
	}
	text := os.Getenv(specText)
	if text == "" {
		return badUsage("no specification: give --spec FILE, or set %s", specText)
	}
	r.spec = spec.Default()
	if err := json.Unmarshal([]byte(text), &r.spec); err != nil {
		return badUsage("read %s: %w", specText, err)
	}
	if problems := r.spec.Validate(); len(problems) > 0 {
		return badUsage("read %s: %w", specText, problems[0])
	}
	return nil
}

func (r *role) readToken() (string, error) {
	if r.tokenFile != "" {
		return run.ReadToken(r.tokenFile)
	}
	token := os.Getenv(tokenText)
	os.Unsetenv(tokenText) // whatever this process starts does not need it
	if token == "" {
		return "", fmt.Errorf("no token: give --token-file FILE, or set %s", tokenText)
	}
	return run.CheckToken(token, tokenText)
}

// readCertificate reads the run's certificate, if it has one.
func (r *role) readCertificate() error {
	text, from := []byte(os.Getenv(certText)), certText
	os.Unsetenv(certText) // whatever this process starts does not need it
	if r.certificateFile != "" {
		var err error
		if text, err = os.ReadFile(r.certificateFile); err != nil {
			return err
		}
		from = r.certificateFile
	}
	if len(text) == 0 {
		return nil
	}
	var err error
	if r.known.Certificate, err = certificate.ReadPin(text); err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	if certificate.HasKey(text) {
		if r.known.Key, err = certificate.Read(text); err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
	}
	return nil
}

// openPort opens a port at an address.
func (r *role) openPort(address, of string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, usageError{err}
	}
	if err := r.known.Secure(l); err != nil {
		l.Close()
		return nil, usageError{fmt.Errorf("%w: give --certificate-file", err)}
	}
	r.log.Info("listening", "for", of, "address", l.Addr().String())
	return l, nil
}

// listener takes over a port from the supervisor, or opens one at an address.
func (r *role) listener(fd uintptr, address, of string) (net.Listener, error) {
	if !r.supervised {
		return r.openPort(address, of)
	}
	file := os.NewFile(fd, "port")
	if file == nil {
		return nil, fmt.Errorf("take port over: no file %d", fd)
	}
	defer file.Close()
	return net.FileListener(file)
}

// needServers checks that the addresses are as many as the specification has
// servers.
func (r *role) needServers() error {
	if want := r.spec.ParameterServer.Replicas; len(r.servers) != want && !r.spec.HasProgram() {
		return badUsage("--servers names %d servers: the run has %d", len(r.servers), want)
	}
	for _, address := range append(r.servers, r.coordinator) {
		if _, port, err := net.SplitHostPort(address); address != "" && (err != nil || port == "") {
			return badUsage("%q is not an address: want host:port", address)
		}
	}
	if r.index < 0 {
		return badUsage("--index is %d: it is counted from 0", r.index)
	}
	return nil
}

// Flags that several roles have.

func indexFlag(r *role, f *pflag.FlagSet) {
	f.IntVar(&r.index, "index", 0, "which of its kind this is, counted from 0")
}

func coordinatorFlag(r *role, f *pflag.FlagSet) {
	f.StringVar(&r.coordinator, "coordinator", "", "`ADDRESS` of the coordinator, host:port")
}

func dataFlag(r *role, f *pflag.FlagSet) {
	f.StringVar(&r.data, "data", "", "`FOLDER` of the prepared dataset; default: as the specification says")
}

func serversFlag(r *role, f *pflag.FlagSet) {
	f.StringSliceVar(&r.servers, "servers", nil, "`ADDRESSES` of the parameter servers, host:port each, in their order")
}

func listenFlag(r *role, f *pflag.FlagSet) {
	f.StringVar(&r.listen, "listen", "127.0.0.1:0", "`ADDRESS` to listen on, host:port; port 0 = any that is free")
}

func apiFlag(r *role, f *pflag.FlagSet) {
	f.StringVar(&r.api, "api", "",
		"`URL` of the coordinator's API, for the usage of this process and for a program's code; default: no usage is measured")
}

func patienceFlag(r *role, f *pflag.FlagSet) {
	f.DurationVar(&r.patience, "coordinator-timeout", 15*time.Minute, "how long to go on without a coordinator; 0 = for ever")
}
