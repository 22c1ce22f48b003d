package wire

import (
	"bufio"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// spoofEnv makes this test's program listen on the socket that it names, as
// another user does who has seen the name of a process that is gone.
const spoofEnv = "STOKE_TEST_SPOOF"

func TestMain(m *testing.M) {
	if name := os.Getenv(spoofEnv); name != "" {
		l, err := net.Listen("unix", name)
		if err != nil {
			panic(err)
		}
		os.Stdout.WriteString("listening\n")
		c, err := l.Accept()
		if err != nil {
			panic(err)
		}
		n, _ := c.Read(make([]byte, 1))
		os.Exit(n) // 1: something was said to it
	}
	os.Exit(m.Run())
}

// The token is not sent to another user's process that took over the name of
// the Unix socket.
func TestAnotherUsersSocketIsNotUsed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process of another user")
	}
	mine := Credentials{Token: strings.Repeat("b", 40)}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("/proc/self/exe") // which that user may not reach
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.CreateTemp("", "spoof")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(file.Name())
	if _, err = file.Write(program); err == nil {
		err = file.Chmod(0o755)
	}
	if cerr := file.Close(); err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	spoof := exec.Command(file.Name())
	spoof.Dir = "/"
	spoof.Env = []string{spoofEnv + "=" + mine.localName(l.Addr())}
	spoof.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := spoof.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := spoof.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	networks := accepted(t, mine, l) // over TCP alone: the name is taken
	dialled(t, mine, l.Addr().String())
	if network := <-networks; network != "tcp" {
		t.Errorf("the connection came over %s", network)
	}
	if err := spoof.Wait(); err != nil {
		t.Errorf("the other user's process heard something: %v", err)
	}
}
