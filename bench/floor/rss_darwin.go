package main

// rssUnit is the unit of Rusage.Maxrss.
const rssUnit = 1
