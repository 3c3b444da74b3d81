package job

import (
	"strings"

	"github.com/sottodp/sotto/config"
	"github.com/sottodp/sotto/model"
)

// Fields are the fields of a spec file and of its blocks model and privacy. The reference and the JSON schema for
// editors are made of them.
func Fields() []config.Block {
	return []config.Block{
		{Title: "Top level", Fields: []config.Field{
			config.NewField("data", "path, or list of paths", "required by `fit`",
				"the table to train on, in one of the [formats](#formats-of-tables); [several files](#several-files) are one table"),
			config.NewField("labels", "path", "by name", "the labels of `data`, for images (IDX)"),
			config.NewField("test_labels", "path", "by name", "likewise, of `test`"),
			config.NewField("test", "path, or list of paths", "none", "a table to score the model on; see below"),
			config.NewField("holdout", "number above 0, up to 0.5", "none",
				"the share of the units that is not trained on, but scored privately; see [A holdout](#a-holdout)"),
			config.NewField("schema", "path", "required",
				"the public description of the table; a packed table holds its own and may be named here"),
			config.NewField("columns", "`all`, `auto`, or a number", "`all`",
				"how many of the columns that features come from are used, the first of the schema; see below"),
			config.NewField("hats", "`auto`, `none`, or a number from 2 to 64", "`auto`",
				"bumps of the numeric columns whose [encoding](#columns-of-type-numeric) the schema leaves open"),
			config.NewField("pairs", "`none`, or a list of pairs of names", "`none`; `auto` may choose some",
				"up to 4 [pairs of numeric columns](#pairs-of-columns) that are also encoded together, as in `[[age, hours]]`"),
			config.NewField("model", "block", "required", "what to train"),
			config.NewField("method", "block", "`auto`, which chooses every number", "how to train"),
			config.NewField("privacy", "block, or `none`", "required",
				"the budget. `none` switches the noise off, in a lab run only"),
			config.NewField("output", "text",
				"`tail-average`; `last` for `auto` with `softmax` of more than two classes on [scattering coefficients](models.md#images)",
				"which iterates become the model: `tail-average`, `last`, `average`, `random`, `ema`", "tail-average last average random ema"),
			config.NewField("lab", "true or false", "false",
				"a lab run: allows `seed` and `privacy: none`, and watermarks all results"),
			config.NewField("seed", "whole number, 0 or more", "none", "seeds samples and noise; with `lab: true` only"),
			config.NewField("ledger", "path or `postgres://…`", "the user's own", "where the datasets' budgets are kept"),
			config.NewField("out", "path", "`runs/<time>-<id>`",
				"the run directory: new, or empty; the default is relative to the working directory"),
			config.NewField("accept_delta", "true or false", "false",
				"accepts a δ of 1/rows or more, of the declared number of rows or units"),
			config.NewField("accept_dropped", "true or false", "false",
				"accepts that `on_bad_row: drop` leaves out more than one row in a hundred"),
			config.NewField("disclosure", "block", "none",
				"what only a person knows, for `sotto disclose` ([disclosure.md](../how-to/disclosure.md#block-disclosure))"),
			config.NewField("tune", "block", "none", "what `sotto tune` draws from ([tune.md](../how-to/tune.md))"),
			config.NewField("compare", "block", "none", "what `sotto compare` varies ([compare.md](../how-to/compare.md))"),
			config.NewField("network", "block", "none",
				"who trains together, for `sotto net` ([network.md](../how-to/network.md))"),
		}},
		{Title: "Block `model`", Fields: append([]config.Field{
			config.NewField("name", "text", "required", "which model: "+oneOf(model.Names())),
			config.NewField("l2", "number", "0", "λ of λ/2·Σw²"),
			config.NewField("l1", "number", "0", "λ of λ·Σ|w|"),
			config.NewField("nonconvex", "number", "0", "λ of λ·Σw²/(1+w²)"),
			config.NewField("class_weights", "number by class", "all 1",
				"weights of the classes in the loss, as in `{yes: 5}` ([Models](models.md#rare-classes))"),
			config.NewField("threshold", "number by class", "none",
				"one of two classes, and from which probability on it is predicted, as in `{yes: 0.2}` ([Models](models.md#rare-classes))"),
		}, modelFields()...)},
		{Title: "Block `privacy`", Fields: []config.Field{
			config.NewField("epsilon", "number above 0", "required",
				"ε of the run; in caps, this much is reserved in the ledger for good"),
			config.NewField("delta", "number from 0, below 1", "required",
				"δ of the run. `sgd` refuses 0: it has Gaussian noise only, which has no finite ε at δ = 0"),
			config.NewField("adjacency", "text", "required", "`add-or-remove` or `replace-one`", "add-or-remove replace-one"),
			config.NewField("accountant", "text", "`best`", "`best`, `rdp`, `pld`, `gdp`, `zcdp` or `pure`",
				"best rdp pld gdp zcdp pure"),
		}},
	}
}

// oneOf lists names, as in `a`, `b` or `c`.
func oneOf(names []string) string {
	last := len(names) - 1
	return "`" + strings.Join(names[:last], "`, `") + "` or `" + names[last] + "`"
}
