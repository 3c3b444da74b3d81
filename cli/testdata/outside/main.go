package main

import (
	"github.com/sottodp/sotto/cli"
	"github.com/sottodp/sotto/method"
)

func main() {
	method.Register(method.Entry{Name: "sign", About: "signs of noisy gradients", Use: "as an example", Method: Sign{}})
	cli.Main()
}
