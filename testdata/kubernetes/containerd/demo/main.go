// Command demo is what containers of tests run: one static program that does
// what its arguments say.
//
//	demo say LINE…       prints the lines, waits to be told to end, and says so
//	demo serve ADDRESS   answers every request over HTTP with its host name
//	demo get URL         prints an answer; https is asked as the pod's service account
//	demo lookup NAME     prints the addresses of a name, one a line
//	demo read FILE       prints a file
//	demo write FILE TEXT writes one
//	demo exit STATUS     ends
package main

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// account is where a pod finds the credential of its service account.
const account = "/var/run/secrets/kubernetes.io/serviceaccount/"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) == 0 {
		return errors.New("say what to do")
	}
	what, args := args[0], args[1:]
	needed := map[string]int{"serve": 1, "get": 1, "lookup": 1, "read": 1, "write": 2, "exit": 1}
	if n, ok := needed[what]; ok && len(args) != n {
		return fmt.Errorf("%s has %d arguments", what, n)
	}
	switch what {
	case "say":
		ended := make(chan os.Signal, 1)
		signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT)
		for _, line := range args {
			fmt.Println(line)
		}
		fmt.Println("told to end:", <-ended)
		return nil
	case "serve":
		return serve(args[0])
	case "get":
		return get(args[0])
	case "lookup":
		addresses, err := net.LookupHost(args[0])
		slices.Sort(addresses)
		fmt.Println(strings.Join(addresses, "\n"))
		return err
	case "read":
		text, err := os.ReadFile(args[0])
		os.Stdout.Write(text)
		return err
	case "write":
		return os.WriteFile(args[0], []byte(args[1]+"\n"), 0o644)
	case "exit":
		status, err := strconv.Atoi(args[0])
		if err != nil {
			return err
		}
		os.Exit(status)
	}
	return fmt.Errorf("%q is nothing that it can do", what)
}

func serve(address string) error {
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	fmt.Println("serving on", address)
	return http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, name) }))
}

func get(url string) error {
	client := &http.Client{Timeout: 10 * time.Second}
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if request.URL.Scheme == "https" {
		authority, err := os.ReadFile(account + "ca.crt")
		if err != nil {
			return err
		}
		token, err := os.ReadFile(account + "token")
		if err != nil {
			return err
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(authority)
		client.Transport = &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
		request.Header.Set("Authorization", "Bearer "+string(token))
	}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if _, err := io.Copy(os.Stdout, answer.Body); err != nil {
		return err
	}
	if answer.StatusCode != http.StatusOK {
		return errors.New(answer.Status)
	}
	return nil
}
