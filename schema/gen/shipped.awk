# SPDX-License-Identifier: Apache-2.0
# Turns JSON files into C: SHIPPED("name", "text") a file, named as the file without its folder and ending.
FNR == 1 {
	if (NR > 1) print ")"
	name = FILENAME
	sub(/.*\//, "", name)
	sub(/\.json$/, "", name)
	print "SHIPPED(\"" name "\","
}
{
	gsub(/\\/, "\\\\")
	gsub(/"/, "\\\"")
	print "\t\"" $0 "\\n\""
}
END { print ")" }
