// Command plugin is a device plugin for tests: it offers as nvidia.com/gpu what is
// called /dev/nvidia0, /dev/nvidia1 and so on where it starts. A pod gets the devices
// that it was given, and no others.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	resource = "nvidia.com/gpu"
	socket   = "stoke-gpus.sock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

// run serves the kubelet until its socket is removed, which a kubelet does that
// starts anew: whoever started this starts it again.
func run(ctx context.Context) error {
	own := filepath.Join(api.DevicePluginPath, socket)
	if err := os.Remove(own); err != nil && !os.IsNotExist(err) {
		return err
	}
	listener, err := net.Listen("unix", own)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	api.RegisterDevicePluginServer(server, &plugin{})
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	defer server.Stop()
	if err := register(ctx); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			return err
		case <-time.After(time.Second):
		}
		if _, err := os.Stat(own); err != nil {
			return fmt.Errorf("the kubelet has started anew: %w", err)
		}
	}
}

func register(ctx context.Context) error {
	kubelet, err := grpc.NewClient("unix://"+api.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer kubelet.Close()
	_, err = api.NewRegistrationClient(kubelet).Register(ctx, &api.RegisterRequest{Version: api.Version, Endpoint: socket, ResourceName: resource})
	return err
}

// plugin is what the kubelet asks.
type plugin struct {
	api.UnimplementedDevicePluginServer
}

func (*plugin) GetDevicePluginOptions(context.Context, *api.Empty) (*api.DevicePluginOptions, error) {
	return &api.DevicePluginOptions{}, nil
}

// ListAndWatch tells what a privileged container had in /dev when it began.
func (*plugin) ListAndWatch(_ *api.Empty, to grpc.ServerStreamingServer[api.ListAndWatchResponse]) error {
	found, err := filepath.Glob("/dev/nvidia[0-9]*")
	if err != nil {
		return err
	}
	answer := &api.ListAndWatchResponse{}
	for _, path := range found {
		answer.Devices = append(answer.Devices, &api.Device{ID: filepath.Base(path), Health: api.Healthy})
	}
	log.Printf("offering %q", found)
	if err := to.Send(answer); err != nil {
		return err
	}
	<-to.Context().Done()
	return to.Context().Err()
}

func (*plugin) Allocate(_ context.Context, asked *api.AllocateRequest) (*api.AllocateResponse, error) {
	answer := &api.AllocateResponse{}
	for _, container := range asked.ContainerRequests {
		one := &api.ContainerAllocateResponse{}
		for _, name := range container.DevicesIds {
			one.Devices = append(one.Devices, &api.DeviceSpec{HostPath: "/dev/" + name, ContainerPath: "/dev/" + name, Permissions: "rw"})
		}
		answer.ContainerResponses = append(answer.ContainerResponses, one)
	}
	return answer, nil
}

func (*plugin) GetPreferredAllocation(context.Context, *api.PreferredAllocationRequest) (*api.PreferredAllocationResponse, error) {
	return &api.PreferredAllocationResponse{}, nil
}

func (*plugin) PreStartContainer(context.Context, *api.PreStartContainerRequest) (*api.PreStartContainerResponse, error) {
	return &api.PreStartContainerResponse{}, nil
}
