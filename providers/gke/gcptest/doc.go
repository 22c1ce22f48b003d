// Package gcptest is a strict double of the parts of Google Cloud that the
// provider gke speaks to: container v1 over gRPC and REST, and compute v1, file
// v1 and serviceusage v1 over REST. It is spoken to by Google's own client
// libraries, unmodified, through endpoint overrides, in plain text on loopback:
//
//	cloud := gcptest.New(t, gcptest.Options{})
//	container.NewClusterManagerClient(ctx,
//		option.WithEndpoint(cloud.Container()), option.WithoutAuthentication(),
//		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())))
//	container.NewClusterManagerRESTClient(ctx,
//		option.WithEndpoint(cloud.REST()+"/container"), option.WithoutAuthentication())
//	compute.NewService(ctx,
//		option.WithEndpoint(cloud.REST()+"/compute/v1/"), option.WithoutAuthentication())
//	file.NewService(ctx, option.WithEndpoint(cloud.REST()+"/file/"), option.WithoutAuthentication())
//	serviceusage.NewService(ctx, option.WithEndpoint(cloud.REST()+"/serviceusage/"), option.WithoutAuthentication())
//
// It lives in the test's process; a program under test runs as its child and is
// given the same addresses.
//
// # Operations
//
// A mutation is accepted, and answered with an operation that runs until it has
// been looked at Options.Polls times (Slow changes that by method; Settle ends
// all). A look is a get, a list or a wait of the operation, a get of its target,
// or a call that is refused because the operation runs. Nothing depends on wall
// time.
//
// # What it checks
//
// Every call is recorded (Calls) and held against what Google publishes: gRPC
// messages against the protos, REST calls against the discovery documents that
// come with the module google.golang.org/api. A path, verb, parameter or field
// that is not in there is refused, and so is a field that is output only, which
// Google would ignore.
//
// # What it is not
//
// Nothing runs behind it: nodes are numbers, a cluster's endpoint is
// Options.APIServer. Of container v1 it takes the names projects/…/locations/…,
// never the older fields project_id, zone and cluster_id. Methods nobody needs
// yet answer UNIMPLEMENTED.
package gcptest
