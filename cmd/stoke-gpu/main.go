package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/stokehq/stoke/runtime/gpu"
	"github.com/stokehq/stoke/runtime/gpu/probe"
)

// version is set by the linker for releases.
var version = "dev"

// answerTime is how long the driver may take for an answer. Callers wait a second
// longer for this program.
const answerTime = 9 * time.Second

// Exit codes.
const (
	exitUnfit       = 1 // or without a driver, where a verdict was wanted
	exitUsage       = 64
	exitInterrupted = 130
)

// status is an error that has been told already.
type status int

func (s status) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// program is the program with what tests replace.
type program struct {
	open   func() (driver, gpu.Snapshot)
	limit  time.Duration // of an answer
	in     io.Reader
	ticks  func(every time.Duration) (<-chan time.Time, func())
	now    func() time.Time
	out    io.Writer
	broken bool // the driver hangs: it is not called again
	// measure has the trainer measure a GPU, by UUID or index; nil: the trainer is not
	// next to this program.
	measure func(ctx context.Context, gpuName string) gpu.Measured
}

// driver is NVIDIA's driver on this machine.
type driver interface {
	inventory() gpu.Inventory
	// snapshot reads all GPUs.
	snapshot() gpu.Snapshot
	// watch has the driver report XID events: later snapshots have them.
	watch()
	close()
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	p := &program{open: openDriver, limit: answerTime, in: os.Stdin, now: time.Now, out: os.Stdout, ticks: newTicks}
	if trainer := probe.TrainerPath(); trainer != "" {
		p.measure = func(ctx context.Context, gpuName string) gpu.Measured { return probe.Measure(ctx, trainer, gpuName) }
	}
	err := p.command().ExecuteContext(ctx)
	var told status
	switch {
	case err == nil:
		os.Exit(0) // also where a call of the driver hangs
	case errors.As(err, &told):
		os.Exit(int(told))
	}
	fmt.Fprintln(os.Stderr, "Error:", err)
	os.Exit(exitUsage)
}

func newTicks(every time.Duration) (<-chan time.Time, func()) {
	t := time.NewTicker(every)
	return t.C, t.Stop
}

func (p *program) command() *cobra.Command {
	root := &cobra.Command{
		Use: "stoke-gpu", Short: "Show the NVIDIA GPUs of this machine, and whether they are fit",
		SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.AddCommand(p.listCommand(), p.watchCommand(), p.checkCommand(), &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Run: func(*cobra.Command, []string) { fmt.Fprintln(p.out, version) },
	})
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(p.out)
	return root
}

func (p *program) listCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the GPUs", Args: cobra.NoArgs,
		Long: "List the GPUs of this machine with their fixed properties. Without NVIDIA's driver it says so, and ends with 0.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			of := p.inventory()
			if asJSON {
				return p.print(of)
			}
			return p.write(listText(of))
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return cmd
}

func (p *program) watchCommand() *cobra.Command {
	var every time.Duration
	var attached bool
	cmd := &cobra.Command{
		Use: "watch", Short: "Print the readings of all GPUs again and again", Args: cobra.NoArgs,
		Long: "Print the readings of all GPUs as a line of JSON, at once and then every 5 seconds. docs/gpu-health.md has\n" +
			"all readings with their units. Without NVIDIA's driver it prints one line that says so, and ends with 0.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if every < 10*time.Millisecond {
				return fmt.Errorf("--every is %v: it must be at least 10ms", every)
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			if attached {
				go func() {
					io.Copy(io.Discard, p.in) //nolint:errcheck // whatever ends it, the parent is gone
					cancel()
				}()
			}
			return p.watch(ctx, every)
		},
	}
	cmd.Flags().DurationVar(&every, "every", 5*time.Second, "time between two readings")
	cmd.Flags().BoolVar(&attached, "attached", false, "end when standard input ends")
	return cmd
}

func (p *program) checkCommand() *cobra.Command {
	var asJSON, measure bool
	var only string
	e := gpu.Expectation{Count: 1}
	cmd := &cobra.Command{
		Use: "check", Short: "Say whether the GPUs are fit for work", Args: cobra.NoArgs,
		Long: "Judge the GPUs by the rules of docs/gpu-health.md. It ends with 0 where all are fit, warnings included, and with 1\n" +
			"where one is unfit, where fewer answer than expected, or without NVIDIA's driver. Where stoke-trainer-gpu is next to\n" +
			"this program, it measures copies and a product on each GPU that is idle, for a minute at most; with --json only\n" +
			"if --measure is given, too. It ends with 130 where an interrupt ends a measurement.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if only != "" {
				e.GPUs = strings.Split(only, ",")
			}
			if !measure || asJSON && !cmd.Flags().Changed("measure") {
				p.measure = nil
			}
			return p.check(cmd.Context(), e, asJSON)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "print a JSON object")
	f.IntVar(&e.Count, "count", e.Count, "GPUs that must answer, at least")
	f.StringVar(&e.Driver, "driver", "", "`VERSION` that the driver must have, or its beginning: 580, 580.65.06; default: any")
	f.BoolVar(&e.Idle, "idle", false, "warn of processes that compute on a GPU")
	f.BoolVar(&measure, "measure", true, "measure idle GPUs where stoke-trainer-gpu is next to this program; with --json: false")
	f.StringVar(&only, "gpus", "", "`LIST` of the GPUs that are judged, as in CUDA_VISIBLE_DEVICES; default: all")
	return cmd
}

// silent returns the snapshot of a driver that hangs.
func (p *program) silent() gpu.Snapshot {
	detail := fmt.Sprintf("no answer for %v", p.limit)
	return gpu.Snapshot{At: p.now().UTC(), GPUs: []gpu.Reading{}, Fault: gpu.FaultSilent, Detail: detail}
}

// await calls a function that calls the driver. It reports false where the function
// takes longer than the limit: its thread may hang for ever.
func (p *program) await(f func()) bool {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	limit := time.NewTimer(p.limit)
	defer limit.Stop()
	select {
	case <-done:
		return true
	case <-limit.C:
		p.broken = true
		return false
	}
}

// opened returns the driver. Where the machine has none, the snapshot has the reason.
func (p *program) opened() (driver, gpu.Snapshot) {
	type answer struct {
		driver
		gpu.Snapshot
	}
	answers := make(chan answer, 1)
	if !p.await(func() {
		d, s := p.open()
		answers <- answer{d, s}
	}) {
		return nil, p.silent()
	}
	a := <-answers
	return a.driver, a.Snapshot
}

func (p *program) inventory() gpu.Inventory {
	d, s := p.opened()
	if d != nil {
		answers := make(chan gpu.Inventory, 1)
		if p.await(func() { answers <- d.inventory(); d.close() }) {
			return <-answers
		}
		s = p.silent()
	}
	return gpu.Inventory{GPUs: []gpu.Device{}, Absent: s.Absent, Fault: s.Fault, Detail: s.Detail}
}

// read returns a snapshot of a driver within the limit.
func (p *program) read(d driver) gpu.Snapshot {
	answers := make(chan gpu.Snapshot, 1)
	if !p.await(func() { answers <- d.snapshot() }) {
		return p.silent()
	}
	s := <-answers
	s.At = p.now().UTC()
	return s
}

// watch prints snapshots until the context ends.
func (p *program) watch(ctx context.Context, every time.Duration) error {
	d, s := p.opened()
	if d != nil && !p.await(d.watch) {
		d, s = nil, p.silent()
	}
	if d == nil {
		s.At = p.now().UTC()
		if err := p.print(s); err != nil || s.Fault == "" {
			return err
		}
		return status(exitUnfit)
	}
	ticks, stop := p.ticks(every)
	defer stop()
	for {
		s := p.read(d)
		if err := p.print(s); err != nil {
			return err
		}
		if p.broken {
			return status(exitUnfit)
		}
		select {
		case <-ticks:
		case <-ctx.Done():
			p.await(d.close)
			return nil
		}
	}
}

// check prints the verdict, and returns an error where a GPU is unfit.
func (p *program) check(ctx context.Context, e gpu.Expectation, asJSON bool) error {
	d, s := p.opened()
	if d != nil {
		s = p.examine(ctx, d, e)
	}
	s.At = p.now().UTC()
	if ctx.Err() != nil { // not all is measured: a verdict would be of less than was asked for
		fmt.Fprintln(os.Stderr, "Interrupted: there is no verdict.")
		return status(exitInterrupted)
	}
	h := gpu.Judge(s, e)
	s.GPUs = gpu.Choose(s.GPUs, e.GPUs)
	err := p.printVerdict(h, s, asJSON)
	if err == nil && h.Verdict == gpu.Unfit {
		err = status(exitUnfit)
	}
	return err
}
