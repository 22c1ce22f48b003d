package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/stokehq/stoke/runtime/engine"
	"github.com/stokehq/stoke/runtime/slot"
	"github.com/stokehq/stoke/runtime/worker"
)

// slotFolder is the folder of the slots of GPUs; "" is the folder of the machine.
// Tests have folders of their own.
var slotFolder string

// openEngine opens the engine that the specification names, for one device. A worker
// with a GPU on this machine waits until one is free, so that no two runs share a
// GPU; in a pod the container sees only its own. The caller calls end when it no
// longer uses the engine.
func (r *role) openEngine(ctx context.Context, o *worker.Options) (end func(), err error) {
	end = func() {}
	e, err := entryOf(&r.spec)
	if err != nil {
		return end, err
	}
	if r.supervised && r.spec.Worker.GPUs > 0 {
		s, err := r.takeGPU(ctx, e.Devices())
		if err != nil {
			return end, err
		}
		end, o.Device = s.Release, s.Device.Index
	}
	if o.Engine, err = e.New(engine.Config{Device: o.Device, Log: r.log}); err != nil {
		end()
		return func() {}, err
	}
	return end, nil
}

// takeGPU takes the slot of a GPU. Where gpu_health is required, it releases the slots of
// unfit GPUs, and returns the error of the last GPU where all are unfit, or where the run has
// the slots of all others. The function asks a driver that does not answer only once.
func (r *role) takeGPU(ctx context.Context, devices []engine.Device) (*slot.Slot, error) {
	var unfit []engine.Device
	var why error // of the last one
	for {
		s, err := slot.Take(ctx, devices, slot.Options{
			Run: r.runName(), Needs: r.spec.Worker.MinReplicas, Unfit: unfit, Folder: slotFolder, Log: r.log, Waits: r.noteWait,
		})
		if errors.Is(err, slot.ErrOwn) {
			return nil, fmt.Errorf("%w (%w)", why, err)
		}
		if err != nil {
			return nil, err
		}
		if err = r.checkGPUs(ctx, []string{cmp.Or(s.Device.UUID, strconv.Itoa(s.Device.Index))}); err == nil {
			return s, nil
		}
		s.Release()
		if errors.As(err, new(machineError)) {
			return nil, err // each check may take as long as it is allowed to
		}
		unfit, why = append(unfit, s.Device), err
		devices = slices.DeleteFunc(slices.Clone(devices), func(d engine.Device) bool { return d == s.Device })
		if len(devices) == 0 {
			return nil, err
		}
		r.log.Warn("an unfit GPU is left out", "gpu", s.Device.Index, "error", err)
	}
}

// noteWait keeps the processes that a worker waits for, which its reports of usage name;
// "": it does not wait.
func (r *role) noteWait(holders string) {
	if holders == "" {
		r.waits.Store(nil)
		return
	}
	text := "waits for a GPU: " + holders
	r.waits.Store(&text)
}

// runName is the name of the run, for people who wait for its GPU.
func (r *role) runName() string {
	if r.name == "" {
		return r.spec.Name
	}
	return r.spec.Name + " " + r.name
}
