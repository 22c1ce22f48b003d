package host

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// missingFolders lists, topmost first, the folders that there are not on the way
// to $1, itself included.
const missingFolders = `# make folders
d=$1; l=
while [ "$d" ] && [ ! -d "$d" ]; do l="$d
$l"; d=${d%/*}; done
printf %s "$l"`

const emptyFolders = `# remove empty folders
for d; do [ ! -d "$d" ] || rmdir -- "$d" 2>/dev/null || printf '%s\n' "$d"; done`

func folderKey(part string) string { return part + " folder " }

// MakeFolder makes a folder with those above it, as 0755, and notes for a part of
// the resource which of them there were not.
func (r *Record) MakeFolder(ctx context.Context, part, dir string) error {
	out, err := Script(ctx, r.m, missingFolders, dir)
	if err != nil {
		return fmt.Errorf("look for %s: %w", dir, err)
	}
	folders, notes := strings.FieldsFunc(string(out), func(c rune) bool { return c == '\n' }), map[string]any{}
	for _, d := range folders {
		if d != dir && !strings.HasPrefix(dir, d+"/") {
			return fmt.Errorf("%s: %q is not on the way to %s", r.m.Name(), d, dir)
		}
		notes[folderKey(part)+d] = true
	}
	if len(folders) == 0 {
		return nil
	}
	if err := r.RememberAll(ctx, notes); err != nil {
		return err
	}
	if _, err := Run(ctx, r.m, append([]string{"install", "-d", "-m", "0755", "--"}, folders...)...); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	return nil
}

// RemoveFolders removes the empty folders that MakeFolder made for a part,
// except folders that keep claims; nil speaks for none. The record keeps the
// others.
func (r *Record) RemoveFolders(ctx context.Context, part string, keep func(dir string) bool) ([]Outcome, error) {
	var folders []string
	for _, note := range slices.Backward(r.Keys(folderKey(part))) { // the deepest first
		if dir := strings.TrimPrefix(note, folderKey(part)); keep == nil || !keep(dir) {
			folders = append(folders, dir)
		}
	}
	if len(folders) == 0 {
		return nil, nil
	}
	out, err := Script(ctx, r.m, emptyFolders, folders...)
	if err != nil {
		return nil, fmt.Errorf("remove folders: %w", err)
	}
	var outcomes []Outcome
	var gone []string
	for _, dir := range folders {
		if slices.Contains(strings.Split(string(out), "\n"), dir) {
			outcomes = append(outcomes, Outcome{Fact: "folder " + dir, Fate: Left, Why: "it is not empty"})
			continue
		}
		outcomes = append(outcomes, Outcome{Fact: "folder " + dir, Fate: Removed})
		gone = append(gone, folderKey(part)+dir)
	}
	return outcomes, r.Forget(ctx, gone...)
}
