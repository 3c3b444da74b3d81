package chart

import "strings"

// FigureWords returns what writes a figure for a reader who does not know it: its name, which is spelled out where it
// comes first, its value, and in parentheses what to compare the value with.
func FigureWords() func(name, value, beside string) string {
	long := map[string]string{"AUC": "area under the ROC curve", "RMSE": "root mean squared error",
		"MAE": "mean absolute error"}
	good := map[string]string{"log loss": "lower is better", "AUC": "0.5 is guessing, 1 is perfect",
		"RMSE": "lower is better", "MAE": "lower is better", "R²": "1 is perfect"}
	return func(name, value, beside string) string {
		text := name
		if l := long[name]; l != "" {
			text += " (" + l + ")"
		}
		text += " " + value
		switch g := good[name]; {
		case g == "" || !strings.ContainsAny(value, "0123456789"):
		case beside == "":
			beside = g
		default:
			beside += "; " + g
		}
		if beside != "" {
			text += " (" + beside + ")"
		}
		delete(long, name)
		delete(good, name)
		return text
	}
}
