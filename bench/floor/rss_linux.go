package main

// rssUnit is what Rusage.Maxrss counts.
const rssUnit = 1024
