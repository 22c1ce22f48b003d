package packages

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/stokehq/stoke/providers/metal/host"
)

// undeclaredFiles are the settings that are noted and not declared; records of
// older versions only have the files.
func (a *apply) undeclaredFiles() []string {
	var all []string
	for _, name := range a.rec.KeptFiles() {
		ours := strings.HasPrefix(name, "/etc/apt/preferences.d/stoke-") || strings.HasPrefix(name, "/etc/apt/apt.conf.d/95stoke-")
		if ours && !slices.Contains(a.want.files(), name) {
			all = append(all, name)
		}
	}
	return all
}

func (a *apply) releaseFiles(ctx context.Context) error {
	for _, name := range a.undeclaredFiles() {
		if _, err := a.rec.GiveBack(ctx, noteFile+name, name); err != nil {
			return err
		}
	}
	return nil
}

// releaseRepositories removes the repositories that are no longer declared: the
// sources first, since a key must outlive its repository.
func (a *apply) releaseRepositories(ctx context.Context) ([]host.Outcome, error) {
	var names []string
	for _, file := range a.rec.KeptFiles() {
		base, ours := strings.CutPrefix(file, sourcesDir+"/stoke-")
		key, also := strings.CutPrefix(file, keyringsDir+"/stoke-")
		name := strings.TrimSuffix(base, ".sources")
		if also {
			name = strings.TrimSuffix(key, ".gpg")
		}
		if _, declared := a.want.Repositories[name]; (ours || also) && !declared && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	have, err := Observe(ctx, a.m, Spec{Owner: a.want.Owner})
	if err != nil {
		return nil, err
	}
	var outcomes []host.Outcome
	for _, name := range names {
		o, err := a.releaseRepository(ctx, name, have)
		if outcomes = append(outcomes, o...); err != nil {
			return outcomes, err
		}
	}
	return outcomes, nil
}

// releaseRepository leaves it to the other owners of it on the machine. The last
// one takes it away, with the lists that apt has read from it; the owner that
// found former content restores it.
func (a *apply) releaseRepository(ctx context.Context, name string, have State) ([]host.Outcome, error) {
	key, file, keyring := noteRepository+name, sourcesFile(name), keyringFile(name)
	var was repositoryWas
	if _, err := a.rec.ReadNote(key, &was); err != nil {
		return nil, err
	}
	others := have.otherOwners(name, a.want.Owner)
	if len(others) > 0 {
		outcome := host.Outcome{Fact: "repository " + name, Fate: host.Left, Why: strings.Join(others, " and ") + " of this machine has it, too", Expected: true}
		err := errors.Join(a.rec.DropFile(ctx, file), a.rec.DropFile(ctx, keyring))
		return []host.Outcome{outcome}, errors.Join(err, a.rec.Forget(ctx, key))
	}
	content, exists, err := host.ReadFile(ctx, a.m, file)
	if err != nil {
		return nil, err
	}
	if exists {
		have.Files[file] = File{Content: content}
	}
	if err := a.dropLists(ctx, file, have, ""); err != nil {
		return nil, err
	}
	if !was.Joined {
		return a.rec.GiveBack(ctx, key, file, keyring)
	}
	for _, f := range []string{file, keyring} {
		if err := errors.Join(host.Remove(ctx, a.m, f), a.rec.DropFile(ctx, f)); err != nil {
			return nil, err
		}
	}
	return []host.Outcome{{Fact: "repository " + name, Fate: host.Removed}}, a.rec.Forget(ctx, key)
}
