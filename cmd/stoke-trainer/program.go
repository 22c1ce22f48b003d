package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/stokehq/stoke/runtime/agent"
	"github.com/stokehq/stoke/runtime/api"
	"github.com/stokehq/stoke/runtime/program"
	"github.com/stokehq/stoke/runtime/spec"
	"github.com/stokehq/stoke/runtime/wire"
)

// programFlags are the flags of a worker or server whose run has a program: it is an
// agent then.
func programFlags(r *role, f *pflag.FlagSet) {
	f.StringVar(&r.name, "run", "", "`NAME` of the run")
	f.StringVar(&r.logs, "logs", "", "`FOLDER` of logs: the ranks' logs are in a folder of it; of a program only")
	f.BoolVar(&r.tee, "tee", false, "print the lines of all ranks on standard output as well, each after \"[rank N] \"; of a program only")
}

// runAgent runs the ranks of one member of a run of a program.
func runAgent(ctx context.Context, r *role, kind string) error {
	if err := r.mayRunProgram(); err != nil {
		return err
	}
	o := agent.Options{
		Spec: r.spec, Run: r.name, Role: kind, Index: r.index + r.firstIndex, Credentials: r.known, Coordinator: r.coordinator,
		Folder: string(r.folder), Logs: r.logs, Checkpoints: r.checkpoints, Log: r.log, Patience: r.patience,
		Devices: devices(&r.spec, kind),
	}
	if r.gpus != nil {
		o.Foreign = r.gpus.Owns
	}
	if r.tee {
		o.Output = tee(os.Stdout)
	}
	if r.api != "" {
		o.API = api.New(r.api, r.known.Token, r.known.Certificate)
		defer o.API.Close()
	}
	r.orphaned.Store(new(endRanks))
	err := agent.Run(ctx, o)
	how := wire.Leave{End: spec.EndAsked, Reason: "asked to leave"}
	if !errors.As(err, &how) && ctx.Err() == nil {
		return err
	}
	return leave(how)
}

// tee returns a function that prints lines of ranks, whole ones also where several
// ranks print at a time.
func tee(to io.Writer) func(rank int, line []byte) {
	var mu sync.Mutex
	return func(rank int, line []byte) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(to, "[rank %d] %s\n", rank, line) // an output that is closed ends nothing
	}
}

// mayRunProgram checks the flags of an agent.
func (r *role) mayRunProgram() error {
	switch {
	case r.coordinator == "":
		return badUsage("no coordinator: give --coordinator ADDRESS")
	case r.name == "":
		return badUsage("no name of the run: give --run NAME")
	case r.state == "":
		return badUsage("no folder of its own: give --state FOLDER")
	case r.logs == "":
		return badUsage("no folder for logs: give --logs FOLDER")
	case r.spec.Program.Code != "" && r.api == "":
		return badUsage("the program has code: give --api URL, where the coordinator answers")
	case r.index < 0 || r.firstIndex < 0:
		return badUsage("--index is %d: it is counted from 0", r.index)
	}
	for _, folder := range []*string{&r.logs, &r.checkpoints} {
		if *folder == "" {
			continue
		}
		path, err := r.makeFolder(*folder)
		if err != nil {
			return badUsage("folder: %w", err)
		}
		*folder = path
	}
	return nil
}

// devices returns the GPUs of a worker, as its environment or their number has them.
func devices(s *spec.Spec, kind string) (all []string) {
	if s.Worker.GPUs == 0 || kind != wire.RoleWorker {
		return nil
	}
	if list := os.Getenv("CUDA_VISIBLE_DEVICES"); list != "" {
		return strings.Split(list, ",")
	}
	for i := range s.Worker.GPUs {
		all = append(all, strconv.Itoa(i))
	}
	return all
}

// endRanks ends at once the ranks of an agent and all that they have started.
func endRanks() {
	const limit = 10 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	program.EndChildren(ctx, func(int) bool { return false }) //nolint:errcheck // the process ends either way
}
