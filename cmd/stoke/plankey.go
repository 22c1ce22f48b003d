package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/stokehq/stoke/plan"
	"github.com/stokehq/stoke/plan/seal"
)

// Where the key of saved plans comes from, the first that is set.
const (
	planKeyVariable = "STOKE_PLAN_KEY"
	planKeyCommand  = "STOKE_PLAN_KEY_COMMAND"
	planKeyFile     = "plan.key" // in the data folder, made when it is needed
	longestKey      = 64 << 10
)

// planKey is the key of saved plans. given reports whether a key was set for
// this run; nil is none.
func (s *session) planKey(ctx context.Context) (key *plan.Key, given bool, err error) {
	if text := s.getenv(planKeyVariable); text != "" {
		return &plan.Key{Text: []byte(text)}, true, nil
	}
	if command := s.getenv(planKeyCommand); command != "" {
		text, err := s.commandKey(ctx, command)
		return &plan.Key{Text: text}, true, err
	}
	key, err = readKeyFile(s.keyFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return key, false, err
}

func (s *session) keyFile() string { return filepath.Join(s.dataDir(), planKeyFile) }

// commandKey runs a command that prints the key. What it says on its standard
// error is shown, its output never.
func (s *session) commandKey(ctx context.Context, command string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Stdin, cmd.Stderr, cmd.Env = s.stage.in, s.stage.err, s.environ
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("the command in %s failed: %w", planKeyCommand, err)
	}
	text := bytes.TrimSpace(out)
	switch {
	case len(text) == 0:
		return nil, fmt.Errorf("the command in %s printed no key", planKeyCommand)
	case len(text) > longestKey:
		return nil, fmt.Errorf("the command in %s printed %d bytes, which is more than any key has", planKeyCommand, len(text))
	}
	return text, nil
}

func readKeyFile(name string) (*plan.Key, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s can be read by others; run chmod 600 on it, or remove it and make new plans", name)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	random, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(random) != seal.SecretLen {
		return nil, fmt.Errorf("%s is no key; remove it and make new plans", name)
	}
	return &plan.Key{Random: random}, nil
}

// sealingKey is the key to seal a plan with: one that is set, else that of
// the working directory, made for the first plan that needs one.
func (s *session) sealingKey(ctx context.Context, pl *plan.Plan) (*plan.Key, error) {
	key, given, err := s.planKey(ctx)
	if err != nil || given {
		return key, err
	}
	if !pl.HoldsSecrets() {
		return nil, nil
	}
	if key != nil {
		return key, nil
	}
	return makeKeyFile(s.keyFile())
}

func makeKeyFile(name string) (*plan.Key, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	key := &plan.Key{Random: seal.Random()}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return readKeyFile(name) // somebody else has made it just now
	}
	if err != nil {
		return nil, err
	}
	_, err = f.WriteString(hex.EncodeToString(key.Random) + "\n")
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(name) // half a key is none
		return nil, err
	}
	return key, nil
}
