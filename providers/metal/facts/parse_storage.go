package facts

import (
	"slices"
	"strings"
)

// SCSI's peripheral device types that are no disks: what reads CDs.
const opticalDrive = "5"

func (a *answer) storage(f *Facts) {
	f.Disks, f.Filesystems, f.Space = []Disk{}, []Filesystem{}, []Space{}
	for _, row := range a.rows("disks", 6) {
		sectors := a.count("disks", row[1])
		// A sector here has 512 bytes, whatever the disk's own have.
		if row[4] == opticalDrive || sectors == 0 || sectors > 1<<53 {
			continue
		}
		f.Disks = append(f.Disks, Disk{
			Name: clean(strings.ReplaceAll(row[0], "!", "/")), Size: sectors * 512, Rotational: row[2] == "1", Removable: row[3] == "1",
			Model: clean(row[5]),
		})
	}
	slices.SortFunc(f.Disks, func(x, y Disk) int { return strings.Compare(x.Name, y.Name) })
	for _, line := range a.sections["filesystems"] {
		if fs, ok := a.filesystem(line); ok {
			f.Filesystems = append(f.Filesystems, fs)
		}
	}
	slices.SortFunc(f.Filesystems, func(x, y Filesystem) int { return strings.Compare(x.Mount, y.Mount) })
	for _, row := range a.rows("space", 3) {
		numbers := strings.Fields(row[1])
		if len(numbers) != 4 {
			a.addUnreadable("space", row[0]+" "+row[1])
			continue
		}
		block := a.count("space", numbers[0])
		total, free := a.count("space", numbers[1]), a.count("space", numbers[2])
		if block <= 0 || block > 1<<26 || total > 1<<40 || free > 1<<40 {
			a.addUnreadable("space", row[0]+" "+row[1])
			continue
		}
		f.Space = append(f.Space, Space{Path: clean(row[0]), Mount: clean(row[2]), Size: total * block, Free: free * block,
			FreeInodes: a.count("space", numbers[3])})
	}
	slices.SortFunc(f.Space, func(x, y Space) int { return strings.Compare(x.Path, y.Path) })
}

// filesystem reads a line of df: type, size, free bytes, and where it is
// mounted, which may have spaces in it.
func (a *answer) filesystem(line string) (Filesystem, bool) {
	var fields [3]string
	rest := strings.TrimSpace(line)
	for i := range fields {
		var ok bool
		if fields[i], rest, ok = strings.Cut(rest, " "); !ok {
			if rest != "" {
				a.addUnreadable("filesystems", line)
			}
			return Filesystem{}, false
		}
		rest = strings.TrimLeft(rest, " ")
	}
	if fields[0] == "Type" || !keeps(fields[0], rest) {
		return Filesystem{}, false
	}
	return Filesystem{Mount: clean(rest), Type: clean(fields[0]), Size: a.count("filesystems", fields[1]), Free: a.count("filesystems", fields[2])}, true
}

// keeps reports whether a filesystem stores what is written to it, unlike the
// kernel's virtual ones, read-only images and the layers of containers.
func keeps(kind, mount string) bool {
	switch {
	case kind == "overlay":
		return mount == "/"
	case strings.HasPrefix(mount, "/run/") || strings.HasPrefix(mount, "/proc/") || strings.HasPrefix(mount, "/sys/"):
		return false
	}
	switch kind {
	case "bcachefs", "btrfs", "exfat", "ext2", "ext3", "ext4", "f2fs", "fat", "jfs", "ntfs", "ntfs3", "reiserfs", "vfat", "xfs", "zfs":
		return true
	}
	return false
}

// SpaceAt is what is free where a path is or would be: a note of Space for it, or
// else the filesystem that holds it. ok is false when neither is known.
func (f *Facts) SpaceAt(path string) (s Space, ok bool) {
	for _, s := range f.Space {
		if s.Path == path {
			return s, true
		}
	}
	for _, fs := range f.Filesystems {
		if len(fs.Mount) >= len(s.Mount) && isBelow(path, fs.Mount) {
			s, ok = Space{Path: path, Mount: fs.Mount, Size: fs.Size, Free: fs.Free}, true
		}
	}
	return s, ok
}

func isBelow(path, mount string) bool {
	return path == mount || mount == "/" || strings.HasPrefix(path, strings.TrimSuffix(mount, "/")+"/")
}
