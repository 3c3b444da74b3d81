package main

import (
	"github.com/sottodp/sotto/cli"
	"github.com/sottodp/sotto/data"
	"github.com/sottodp/sotto/data/source"
	"github.com/sottodp/sotto/gossip"
	"github.com/sottodp/sotto/method"
	"github.com/sottodp/sotto/model"
)

func main() {
	method.Register(method.Entry{Name: "sign", About: "signs of noisy gradients", Use: "as an example", Method: Sign{}})
	model.Register(model.Entry{Name: "rare", About: "logistic regression of a rare class", Label: model.TwoClasses, Config: Rare{}})
	source.Register(data.Format{Name: "a fixed-width file", Is: isFixed, Magic: true, Open: openFixed})
	gossip.Register(gossip.Entry{Name: "heavy-ball", About: "distributed gradient descent with momentum", Method: HeavyBall{}})
	cli.Main()
}
