package dataset

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/stokehq/stoke/runtime/spec"
)

func pngOf(t testing.TB, m image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := png.Encode(&out, m); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func jpegOf(t testing.TB, m image.Image) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := jpeg.Encode(&out, m, &jpeg.Options{Quality: 100}); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// plain is a picture of one colour.
func plain(width, height int, c color.Color) image.Image {
	m := image.NewNRGBA64(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.Set(x, y, c)
		}
	}
	return m
}

func greyOf(width, height int, value byte) image.Image {
	m := image.NewGray(image.Rect(0, 0, width, height))
	for i := range m.Pix {
		m.Pix[i] = value
	}
	return m
}

func rgb(r, g, b byte) color.Color { return color.NRGBA{r, g, b, 255} }

// animals is a set of 2 × 1 pictures in colour.
func animals(t testing.TB) map[string][]byte {
	t.Helper()
	files := make(map[string][]byte)
	for i := range 6 {
		n := byte(i)
		files[fmt.Sprintf("train/cat/%d.png", i)] = pngOf(t, plain(2, 1, rgb(10+n, 20, 30)))
		files[fmt.Sprintf("train/dog/%d.PNG", i)] = pngOf(t, plain(2, 1, rgb(110+n, 120, 130)))
	}
	files["test/dog/a.png"] = pngOf(t, plain(2, 1, rgb(200, 201, 202)))
	return files
}

func zipOf(t testing.TB, files map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// under returns the files of a folder, with another folder in its place.
func under(files map[string][]byte, folder, instead string) map[string][]byte {
	some := make(map[string][]byte)
	for name, text := range files {
		if rest, ok := strings.CutPrefix(name, folder); ok {
			some[instead+rest] = text
		}
	}
	return some
}

func inspectImages(path string) (Manifest, error) {
	return Inspect(context.Background(), spec.Origin{Format: "images", Path: path})
}

func TestImages(t *testing.T) {
	files := animals(t)
	for name, text := range map[string]string{
		"train/.DS_Store": "x", "train/cat/.hidden.png": "x", "train/cat/Thumbs.db": "x", "train/labels.csv": "x", "train/.git/config": "x",
		"README.md": "x",
	} {
		files[name] = []byte(text)
	}
	dir := folder(t, files)
	about, pixels, labels := load(t, spec.Origin{Format: "images", Path: dir}, Train)
	if about.Records != 12 || about.Classes != 2 || !cmp.Equal(about.Shape, []int{1, 2, 3}) {
		t.Errorf("info %+v", about)
	}
	var first []byte
	for i, l := range labels {
		p := pixels[6*i : 6*i+6]
		want := []byte{10, 20, 30, 10, 20, 30}
		if l == 1 {
			want = []byte{110, 120, 130, 110, 120, 130}
		}
		first = append(first, p[0])
		p[0], p[3] = p[0]/10*10, p[3]/10*10
		if !bytes.Equal(p, want) {
			t.Errorf("record %d of class %d: %v", i, l, p)
		}
	}
	sorted := slices.Sorted(slices.Values(first))
	if !bytes.Equal(sorted, []byte{10, 11, 12, 13, 14, 15, 110, 111, 112, 113, 114, 115}) {
		t.Errorf("records %v", first)
	}
	if slices.IsSorted(labels) {
		t.Errorf("classes lie in blocks: %v", labels)
	}
	if _, pixels, labels := load(t, spec.Origin{Format: "images", Path: dir}, Test); labels[0] != 1 || !bytes.Equal(pixels[:3], []byte{200, 201, 202}) {
		t.Errorf("test record: %v, %v", pixels, labels)
	}
	other, err := Inspect(context.Background(), spec.Origin{Format: "images", Path: dir, Seed: 1})
	if before, _ := inspectImages(dir); err != nil || other.Train.Hash == before.Train.Hash {
		t.Errorf("another seed gives the same order: %v", err)
	}
	some, err := Inspect(context.Background(), spec.Origin{Format: "images", Path: dir, Train: 5})
	if err != nil || some.Train.Records != 5 || some.Train.Classes != 2 {
		t.Errorf("limited to 5: %+v, %v", some, err)
	}
}

// Folders and zip files with the same pictures are the same data, with the
// names of the classes in the manifest; so is a copy of the prepared folder.
func TestImagesZip(t *testing.T) {
	files := animals(t)
	train, test := under(files, "train/", ""), under(files, "test/", "")
	want, err := inspectImages(folder(t, files))
	if err != nil || !cmp.Equal(want.ClassNames, []string{"cat", "dog"}) {
		t.Fatalf("%+v, %v", want, err)
	}
	train["__MACOSX/cat/._1.png"], train["cat/"] = []byte("x"), nil
	hostile := under(train, "cat/", "../../../etc/cat/")
	maps.Copy(hostile, under(train, "dog/", "/etc/dog/"))
	for name, path := range map[string]string{
		"two files": folder(t, map[string][]byte{"train.zip": zipOf(t, train), "test.zip": zipOf(t, test)}),
		"leading folder": folder(t, map[string][]byte{
			"train.zip": zipOf(t, under(files, "train/", "train/")), "test.zip": zipOf(t, under(files, "test/", "y/")),
		}),
		"one file":      filepath.Join(folder(t, map[string][]byte{"all.zip": zipOf(t, files)}), "all.zip"),
		"one, leading":  filepath.Join(folder(t, map[string][]byte{"all.ZIP": zipOf(t, under(files, "", "animals-1.0/"))}), "all.ZIP"),
		"mixed":         folder(t, map[string][]byte{"train.zip": zipOf(t, train), "test/dog/a.png": files["test/dog/a.png"]}),
		"hostile names": folder(t, map[string][]byte{"train.zip": zipOf(t, hostile), "test.zip": zipOf(t, test)}),
	} {
		got, err := inspectImages(path)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
	dir := filepath.Join(t.TempDir(), "prepared")
	if _, err := Prepare(context.Background(), spec.Origin{Format: "images", Path: folder(t, files)}, dir, nil); err != nil {
		t.Fatal(err)
	}
	again, err := Inspect(context.Background(), spec.Origin{Format: "recordio", Path: dir})
	want.Format = "recordio"
	if diff := cmp.Diff(want, again); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// Each kind of PNG and JPEG gives the values that it shows over black.
func TestImageKinds(t *testing.T) {
	deep := image.NewRGBA64(image.Rect(0, 0, 1, 1))
	deep.SetRGBA64(0, 0, color.RGBA64{0x12ff, 0x3400, 0x5680, 0xffff})
	deepGrey := image.NewGray16(image.Rect(0, 0, 1, 1))
	deepGrey.SetGray16(0, 0, color.Gray16{0xabff})
	palette := image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{rgb(1, 1, 1), rgb(7, 8, 9)})
	palette.Pix[0] = 1
	greys := image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{rgb(1, 1, 1), rgb(9, 9, 9)})
	greys.Pix[0] = 1
	clear := image.NewNRGBA(image.Rect(0, 0, 1, 1))
	clear.SetNRGBA(0, 0, color.NRGBA{200, 100, 50, 51}) // a fifth
	for name, c := range map[string]struct {
		text   []byte
		colour []byte
		grey   bool
	}{
		"grey":              {pngOf(t, greyOf(1, 1, 5)), []byte{5, 5, 5}, true},
		"grey JPEG":         {jpegOf(t, greyOf(1, 1, 5)), []byte{5, 5, 5}, true},
		"16 bits":           {pngOf(t, deep), []byte{0x12, 0x34, 0x56}, false},
		"16 bits, grey":     {pngOf(t, deepGrey), []byte{0xab, 0xab, 0xab}, true},
		"palette":           {pngOf(t, palette), []byte{7, 8, 9}, false},
		"palette of greys":  {pngOf(t, greys), []byte{9, 9, 9}, true},
		"alpha":             {pngOf(t, clear), []byte{40, 20, 10}, false},
		"grey, with alpha":  {greyAlpha(t, 200, 51), []byte{40, 40, 40}, true},
		"JPEG in colour":    {jpegOf(t, plain(1, 1, color.White)), []byte{255, 255, 255}, false},
		"JPEG called a PNG": {jpegOf(t, plain(1, 1, color.Black)), []byte{0, 0, 0}, false},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string][]byte{
				"train/a/1.png": c.text, "train/b/1.png": c.text, "test/a/1.png": c.text,
			}
			about, pixels, _ := load(t, spec.Origin{Format: "images", Path: folder(t, files)}, Train)
			shape, want := []int{1, 1, 3}, c.colour
			if c.grey {
				shape, want = []int{1, 1}, c.colour[:1]
			}
			if !cmp.Equal(about.Shape, shape) || !bytes.HasPrefix(pixels, want) {
				t.Errorf("shape %v, values %v; want %v, %v", about.Shape, pixels, shape, want)
			}
			// Beside a picture in colour, three channels.
			files["train/c/1.png"] = pngOf(t, plain(1, 1, rgb(1, 2, 3)))
			about, pixels, labels := load(t, spec.Origin{Format: "images", Path: folder(t, files)}, Train)
			at := 3 * slices.Index(labels, 0)
			if !cmp.Equal(about.Shape, []int{1, 1, 3}) || !bytes.Equal(pixels[at:at+3], c.colour) {
				t.Errorf("beside colour: shape %v, values %v; want %v", about.Shape, pixels[at:at+3], c.colour)
			}
		})
	}
}

// greyAlpha writes a PNG of one pixel, grey with alpha, which image/png reads
// but does not write.
func greyAlpha(t testing.TB, value, alpha byte) []byte {
	t.Helper()
	out := []byte("\x89PNG\r\n\x1a\n")
	chunk := func(kind string, body []byte) {
		out = binary.BigEndian.AppendUint32(out, uint32(len(body)))
		begin := len(out)
		out = append(append(out, kind...), body...)
		out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out[begin:]))
	}
	chunk("IHDR", []byte{0, 0, 0, 1, 0, 0, 0, 1, 8, pngGreyAlpha, 0, 0, 0})
	var packed bytes.Buffer
	z := zlib.NewWriter(&packed)
	if _, err := z.Write([]byte{0, value, alpha}); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	chunk("IDAT", packed.Bytes())
	chunk("IEND", nil)
	return out
}

func TestImagesRefusals(t *testing.T) {
	good := animals(t)["test/dog/a.png"]
	photo := jpegOf(t, plain(2, 1, rgb(1, 2, 3)))
	huge := bytes.Clone(good)
	binary.BigEndian.PutUint32(huge[16:], 60000)
	binary.BigEndian.PutUint32(huge[20:], 60000)
	binary.BigEndian.PutUint32(huge[29:], crc32.ChecksumIEEE(huge[12:29]))
	damaged := bytes.Clone(good)
	damaged[len(damaged)-20] ^= 1
	for name, c := range map[string]struct {
		file string
		text []byte
		want string
	}{
		"cut JPEG":         {"train/cat/9.jpg", photo[:len(photo)-9], "truncated"},
		"cut PNG":          {"train/cat/9.png", good[:len(good)-9], "truncated"},
		"cut header":       {"train/cat/9.png", good[:20], "truncated"},
		"empty file":       {"train/cat/9.png", []byte{}, "neither a PNG nor a JPEG"},
		"damaged":          {"train/cat/9.png", damaged, "damaged or truncated"},
		"text":             {"test/cat/9.jpeg", []byte("<html>not found</html>"), "neither a PNG nor a JPEG"},
		"60000 × 60000":    {"train/cat/9.png", huge, "claims 60000 × 60000 pixels"},
		"other size":       {"train/cat/9.png", pngOf(t, plain(3, 1, color.Black)), "it is 3 × 1 pixels"},
		"other test size":  {"test/cat/9.png", pngOf(t, plain(2, 2, color.Black)), "2 × 2 pixels"},
		"other class":      {"test/cow/1.png", good, `class "cow" has no training pictures`},
		"no class":         {"train/9.png", good, "in no folder of a class"},
		"empty class":      {"train/cow/readme.txt", []byte("x"), "has no picture"},
		"folder in folder": {"train/cat/more/9.png", good, "folder in the folder of a class"},
	} {
		t.Run(name, func(t *testing.T) {
			files := animals(t)
			files[c.file] = c.text
			path := folder(t, files)
			refusedImages(t, path, c.want, strings.Split(c.file, "/")[1])
			zipped := filepath.Join(t.TempDir(), "all.zip")
			if err := os.WriteFile(zipped, zipOf(t, files), 0o644); err != nil {
				t.Fatal(err)
			}
			if name == "folder in folder" {
				c.want = "in no folder of a class"
			}
			refusedImages(t, zipped, c.want, strings.Split(c.file, "/")[1])
		})
	}
}

// refusedImages wants an error from both commands that names the file, and
// nothing left behind.
func refusedImages(t *testing.T, path, want, name string) {
	t.Helper()
	parent := t.TempDir()
	from := spec.Origin{Format: "images", Path: path}
	_, err := Prepare(context.Background(), from, filepath.Join(parent, "out"), nil)
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
		t.Errorf("want an error with %q and %q, got %v", want, name, err)
	}
	if left, _ := os.ReadDir(parent); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := inspectImages(path); err == nil {
		t.Error("inspected without complaint")
	}
}

func TestImagesLayoutRefusals(t *testing.T) {
	files := animals(t)
	grey := under(files, "train/", "train/")
	for name := range grey {
		grey[name] = pngOf(t, greyOf(2, 1, 9))
	}
	grey["test/dog/a.png"] = files["test/dog/a.png"]
	one := under(files, "train/cat", "train/cat")
	one["test/cat/1.png"] = files["train/cat/1.png"]
	encrypted := zipOf(t, under(files, "train/", ""))
	for at := 0; ; at++ { // the flags of each entry in the directory
		next := bytes.Index(encrypted[at:], []byte("PK\x01\x02"))
		if next < 0 {
			break
		}
		at += next
		encrypted[at+8] |= 1
	}
	twice := zipOf(t, map[string][]byte{"cat/1.png": files["train/cat/1.png"], "dog/1.png": files["train/cat/1.png"], "/cat/1.png": files["train/cat/1.png"]})
	test := files["test/dog/a.png"]
	for want, layout := range map[string]map[string][]byte{
		"neither a folder train nor a file train.zip": {"x": {}},
		"neither a folder test nor a file test.zip":   under(files, "train/", "train/"),
		"has no pictures":            {"train/readme.txt": []byte("x"), "test/dog/a.png": test},
		"one class, \"cat\"":         one,
		"training pictures are grey": grey,
		"is encrypted":               {"train.zip": encrypted, "test/dog/a.png": test},
		"two pictures":               {"train.zip": twice, "test/dog/a.png": test},
		"directory of the zip":       {"train.zip": []byte("PK\x03\x04"), "test/dog/a.png": test},
		"test.zip":                   {"train/cat/1.png": test, "train/dog/1.png": test, "test.zip": []byte("x")},
	} {
		refusedImages(t, folder(t, layout), want, "")
	}
	refusedImages(t, filepath.Join(folder(t, map[string][]byte{"data.tar": {}}), "data.tar"), "neither a folder nor a .zip", "")
	refusedImages(t, "/nonexistent/pictures", "the dataset's path", "")
}

// A link within the folder is followed, one that leads out of it is not.
func TestImagesLinks(t *testing.T) {
	files := animals(t)
	files["spare/x.png"] = files["train/cat/1.png"]
	outside := folder(t, map[string][]byte{"x.png": files["train/cat/1.png"]})
	for name, link := range map[string][2]string{
		"file": {"../../spare/x.png", "train/cat/link.png"}, "class": {"../spare", "train/spare"},
		"file outside": {filepath.Join(outside, "x.png"), "train/cat/link.png"}, "class outside": {outside, "train/spare"},
		"split outside": {outside, "test"}, "nothing": {"gone.png", "train/cat/link.png"},
	} {
		dir := folder(t, files)
		if name == "split outside" {
			if err := os.RemoveAll(filepath.Join(dir, "test")); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Symlink(link[0], filepath.Join(dir, link[1])); err != nil {
			t.Fatal(err)
		}
		m, err := inspectImages(dir)
		if name == "file" || name == "class" {
			if err != nil || m.Train.Records != 13 {
				t.Errorf("%s: %d records, %v", name, m.Train.Records, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), "only links to files in the dataset's folder") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A small entry that expands without end is read up to a limit.
func TestImagesZipBomb(t *testing.T) {
	files := under(animals(t), "train/", "")
	files["cat/bomb.png"] = append(bytes.Clone(files["cat/1.png"]), make([]byte, maxPictureBytes)...)
	text := zipOf(t, files)
	refusedImages(t, folder(t, map[string][]byte{"train.zip": text, "test.zip": text}), "claims", "bomb.png")
	// The same with a directory that claims less.
	at := bytes.LastIndex(text, []byte("cat/bomb.png")) - 46
	binary.LittleEndian.PutUint32(text[at+24:], 100)
	refusedImages(t, folder(t, map[string][]byte{"train.zip": text, "test.zip": text}), "", "bomb.png")
}

func TestManyImages(t *testing.T) {
	files := animals(t)
	for i := range 2000 {
		files[fmt.Sprintf("train/cat/more-%d.png", i)] = files["train/cat/1.png"]
	}
	if m, err := inspectImages(folder(t, files)); err != nil || m.Train.Records != 2012 {
		t.Errorf("%+v, %v", m, err)
	}
}

// The order is a permutation that depends on seed and split only.
func TestShuffle(t *testing.T) {
	order := func(seed, split uint64) []int32 {
		pictures := make([]picture, 100)
		for i := range pictures {
			pictures[i].label = int32(i)
		}
		shuffle(pictures, seed, split)
		var labels []int32
		for _, p := range pictures {
			labels = append(labels, p.label)
		}
		return labels
	}
	first := order(0, 0)
	if !slices.Equal(first, order(0, 0)) || slices.Equal(first, order(1, 0)) || slices.Equal(first, order(0, 1)) {
		t.Error("the order does not follow from seed and split")
	}
	if want := []int32{61, 18, 7, 47, 51}; !slices.Equal(first[:5], want) {
		t.Errorf("the order has changed, and so the hashes of datasets: it starts with %v, want %v", first[:5], want)
	}
	slices.Sort(first)
	for i, l := range first {
		if int(l) != i {
			t.Fatalf("record %d is missing: %v", i, first)
		}
	}
}

func FuzzImages(f *testing.F) {
	photo := jpegOf(f, plain(2, 1, rgb(1, 2, 3)))
	files := animals(f)
	f.Add(photo)
	f.Add(photo[:len(photo)/2])
	f.Add(files["test/dog/a.png"])
	f.Add(greyAlpha(f, 1, 2))
	f.Add(zipOf(f, under(files, "train/", "")))
	f.Add(zipOf(f, under(files, "train/", "../x/")))
	f.Fuzz(func(t *testing.T, text []byte) {
		some := map[string][]byte{
			"train/a/1.png": text, "train/b/1.png": text, "test/a/1.png": text,
		}
		if bytes.HasPrefix(text, []byte("PK")) {
			some = map[string][]byte{"train.zip": text, "test.zip": text}
		}
		m, err := inspectImages(folder(t, some))
		if err == nil && (m.Train.Records < 1 || m.Train.Records > int64(len(text)) || m.Train.Classes < 2) {
			t.Errorf("%d bytes gave %+v", len(text), m)
		}
	})
}
