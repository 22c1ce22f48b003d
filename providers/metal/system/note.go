package system

import (
	"context"
	"slices"

	"github.com/stokehq/stoke/providers/metal/host"
)

// note writes down what there is of all that is declared for the first time,
// whether it is to change or not: what is changed by hand later is no value of
// before. Kernel modules stay loaded in any case and need no note.
func note(ctx context.Context, rec *host.Record, want Spec, have Facts) error {
	was := map[string]any{}
	var files []string
	if want.Hostname != "" {
		was[nameKey] = nameWas{Live: have.Name.Live, Static: have.Name.Static, Own: ownLines(have.Name.Hosts)}
	}
	if want.SwapOff && len(diffSwap(have.Swap)) == 0 {
		was[swapKey] = swapWas{Off: true}
	}
	if want.Timezone != "" {
		was[zoneKey] = have.Timezone
		files = append(files, zoneFiles...)
	}
	for k := range want.Sysctl {
		if s := have.Sysctl[k]; s.State == SysctlValue {
			was[sysctlKey+k] = s.Live
		}
	}
	if want.Time != nil {
		service := have.Time.Service(*want.Time)
		if u := have.Time.unit(service); u.Load == "loaded" {
			was[timeKey+service] = timeWas{Enabled: u.File == "enabled", Active: u.Active == "active"}
		}
	}
	for name := range want.Files {
		if have.Files[name].obstacle(name) == nil {
			was[fileKey+name] = true
			files = append(files, name)
		}
	}
	for _, key := range rec.Keys("system ") { // and never again
		delete(was, key)
	}
	slices.Sort(files)
	for _, name := range files {
		key := fileKey + name
		if slices.Contains(zoneFiles, name) {
			key = zoneKey
		}
		if _, first := was[key]; !first {
			continue
		}
		if err := rec.KeepFile(ctx, name); err != nil {
			return err
		}
	}
	return rec.RememberAll(ctx, was)
}
