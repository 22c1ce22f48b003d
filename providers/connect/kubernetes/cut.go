package kubernetes

import (
	"errors"
	"io"
	"net/http"

	core "k8s.io/api/core/v1"
	//lint:ignore SA1019 client-go's executor of commands knows no other yet
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/transport/spdy"
)

// toTheEnd makes connections on which a command has ended only once its status
// came. client-go takes the end of a stream of errors for success, and a
// connection that is cut looks the same.
type toTheEnd struct{ spdy.Upgrader }

func (u toTheEnd) NewConnection(resp *http.Response) (httpstream.Connection, error) {
	conn, err := u.Upgrader.NewConnection(resp)
	if err != nil {
		return nil, err
	}
	switch resp.Header.Get(httpstream.HeaderProtocolVersion) {
	case remotecommand.StreamProtocolV4Name, remotecommand.StreamProtocolV5Name:
		return cuttable{conn}, nil
	}
	return conn, nil // before version 4, success is silence
}

type cuttable struct{ httpstream.Connection }

func (c cuttable) CreateStream(headers http.Header) (httpstream.Stream, error) {
	s, err := c.Connection.CreateStream(headers)
	if err != nil || headers.Get(core.StreamType) != core.StreamTypeError {
		return s, err
	}
	return &statusStream{Stream: s}, nil
}

// statusStream is one that must not end before it said something.
type statusStream struct {
	httpstream.Stream
	said bool
}

func (s *statusStream) Read(p []byte) (int, error) {
	n, err := s.Stream.Read(p)
	s.said = s.said || n > 0
	if errors.Is(err, io.EOF) && !s.said {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
