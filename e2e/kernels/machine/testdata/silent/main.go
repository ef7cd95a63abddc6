// Command silent is a first process that says nothing and never ends.
package main

import "time"

func main() {
	for {
		time.Sleep(time.Hour)
	}
}
