package dataset

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	_ "image/jpeg" // for image.Decode
	_ "image/png"  // for image.Decode
	"io"
	"io/fs"
)

const (
	maxPictureBytes = 1 << 26 // of one file
	maxPixels       = 1 << 24 // of one picture
)

// pictureHead is the part of a picture's header that a dataset needs. A grey
// picture is stored with one value a pixel, or with a palette of greys.
type pictureHead struct {
	width, height int
	grey          bool
}

func (h pictureHead) String() string { return fmt.Sprintf("%d × %d", h.width, h.height) }

// channels returns the number of values of a pixel.
func (h pictureHead) channels() int {
	if h.grey {
		return 1
	}
	return 3
}

// readPictureHead reads the header of a PNG or JPEG picture, and refuses a
// picture whose header claims more pixels than fit into little memory.
func readPictureHead(in *bufio.Reader) (pictureHead, error) {
	start, _ := in.Peek(pngColourType + 1) // DecodeConfig reports the error
	config, format, err := image.DecodeConfig(in)
	if errors.Is(err, image.ErrFormat) {
		return pictureHead{}, errors.New("it is neither a PNG nor a JPEG picture")
	}
	if err != nil {
		return pictureHead{}, describeDamage(err)
	}
	h := pictureHead{config.Width, config.Height, isGrey(config.ColorModel)}
	if format == "png" && len(start) > pngColourType && start[pngColourType] == pngGreyAlpha {
		h.grey = true
	}
	if h.width < 1 || h.height < 1 || h.width > maxPixels/h.height {
		return pictureHead{}, fmt.Errorf("it claims %s pixels: want 1 to %d in all", h, maxPixels)
	}
	return h, nil
}

// describeDamage adds to a decoder's words what they mean to the owner of the file.
func describeDamage(err error) error {
	var system *fs.PathError
	if errors.As(err, &system) {
		return err
	}
	return fmt.Errorf("it is damaged or truncated: %w", err)
}

// image/png reports grey with alpha as colour. The place of the type in the
// file is fixed: PNG (Third Edition), 11.2.1.
const (
	pngColourType = 25
	pngGreyAlpha  = 4
)

func isGrey(m color.Model) bool {
	palette, ok := m.(color.Palette)
	if !ok {
		return m == color.GrayModel || m == color.Gray16Model
	}
	for _, c := range palette {
		if r, g, b, _ := c.RGBA(); r != g || g != b {
			return false
		}
	}
	return true
}

// decoder decodes pictures of one size, one after the other.
type decoder struct {
	want   pictureHead // grey: records have one channel
	text   bytes.Buffer
	canvas *image.RGBA
}

// decode decodes a picture into the values of a record, channels last. Alpha is
// dropped over black, and of 16 bits the upper 8 stay. The header is checked
// again: the file may have changed since it was listed.
func (d *decoder) decode(file io.Reader, out []byte) error {
	d.text.Reset()
	if n, err := d.text.ReadFrom(io.LimitReader(file, maxPictureBytes+1)); err != nil {
		return describeDamage(err)
	} else if n > maxPictureBytes {
		return fmt.Errorf("it has more than the %d bytes that a picture may have", maxPictureBytes)
	}
	h, err := readPictureHead(bufio.NewReader(bytes.NewReader(d.text.Bytes())))
	if err != nil {
		return err
	}
	if h.width != d.want.width || h.height != d.want.height || d.want.grey && !h.grey {
		return errors.New("it has changed while it was read")
	}
	picture, _, err := image.Decode(&d.text)
	if err != nil {
		return describeDamage(err)
	}
	if d.canvas == nil {
		d.canvas = image.NewRGBA(image.Rect(0, 0, h.width, h.height))
	}
	draw.Draw(d.canvas, d.canvas.Bounds(), picture, picture.Bounds().Min, draw.Src)
	channels := d.want.channels()
	for i := range h.width * h.height {
		// The canvas has colours times alpha, so the picture over black.
		copy(out[i*channels:(i+1)*channels], d.canvas.Pix[4*i:])
	}
	return nil
}
