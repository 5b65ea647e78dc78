# SPDX-License-Identifier: Apache-2.0
# man.awk: manual pages of libdptrack from its header, so that there is one text: the comment at the head becomes
# dptrack.3, each group of prototypes with the comment above it becomes the page of its first function, and the others'
# pages point there. usage: awk -v dir=DIR -v version=V -f man.awk dptrack.h
function escape(s) {
	gsub(/\\/, "\\e", s)
	gsub(/-/, "\\-", s)
	if (s ~ /^[.']/)
		s = "\\&" s
	return s
}
function strip(s) {
	sub(/^[ \t]*\/\*[ \t]?/, "", s)
	sub(/[ \t]*\*\/[ \t]*$/, "", s)
	sub(/^[ \t]*\* ?/, "", s)
	return s
}
function title(file, name) {
	printf ".TH %s 3 \"\" \"dptrack %s\" \"libdptrack\"\n", name, version > file
}
# Lines of a comment: indented by a tab is code, an empty one begins a paragraph.
function body(file, text,   n, i, lines, code) {
	n = split(text, lines, "\n")
	for (i = 1; i <= n; i++) {
		if (lines[i] ~ /^\t/) {
			if (!code)
				print ".PP\n.nf" > file
			code = 1
			sub(/^\t/, "", lines[i])
		} else if (code && lines[i] !~ /^[ \t]*$/) {
			print ".fi" > file
			code = 0
		}
		print (lines[i] ~ /^[ \t]*$/ ? (code ? "" : ".PP") : escape(lines[i])) > file
	}
	if (code)
		print ".fi" > file
}
function function_name(proto) {
	sub(/\(.*/, "", proto)
	sub(/.*[ *]/, "", proto)
	return proto
}
function first_sentence(text) {
	gsub(/\n/, " ", text)
	sub(/[.;:] .*/, "", text)
	sub(/\.$/, "", text)
	return text == "" ? "part of libdptrack" : text
}
function flush_group(   i, main, file, name) {
	if (!n_proto)
		return
	main = function_name(proto[1])
	file = dir "/" main ".3"
	title(file, main)
	print ".SH NAME" > file
	for (i = 1; i <= n_proto; i++)
		printf "%s%s", function_name(proto[i]), i < n_proto ? ", " : "" > file
	print " \\- " escape(first_sentence(comment)) > file
	print ".SH SYNOPSIS\n.nf\n#include <dptrack.h>\n" > file
	for (i = 1; i <= n_proto; i++)
		print escape(proto[i]) > file
	print ".fi\n.SH DESCRIPTION" > file
	body(file, comment)
	print ".SH RETURN VALUE\nFunctions that return int return 0, or a negative enum dptrack_code; see\n.BR dptrack (3)." > file
	print ".SH SEE ALSO\n.BR dptrack (3)" > file
	close(file)
	for (i = 2; i <= n_proto; i++) {
		name = function_name(proto[i])
		print ".so man3/" main ".3" > (dir "/" name ".3")
		close(dir "/" name ".3")
	}
	n_proto = 0
	comment = ""
}
/^\/\* dptrack\.h:/ { head = 1; sub(/dptrack\.h: /, "") }
head {
	overview = overview strip($0) "\n"
	if (/\*\//)
		head = 0
	next
}
/^(struct|enum) .*\{$/ { declaration = 1; flush_group() }
declaration {
	types = types $0 "\n"
	if (/^};/) {
		declaration = 0
		types = types "\n"
	}
	next
}
/^\/\*/ { flush_group(); comment = ""; in_comment = 1 }
in_comment {
	comment = comment strip($0) "\n"
	if (/\*\//)
		in_comment = 0
	next
}
/^[a-z].*dptrack_[a-z0-9_]*\(/ {
	line = $0
	if (match(line, /\/\*.*\*\//)) {
		comment = comment function_name(substr(line, 1, RSTART)) ": " strip(substr(line, RSTART)) "\n"
		line = substr(line, 1, RSTART - 1)
		sub(/[ \t]+$/, "", line)
	}
	while (line !~ /;/ && (getline more) > 0)
		line = line "\n" more
	proto[++n_proto] = line
	next
}
/^$/ { flush_group() }
END {
	flush_group()
	file = dir "/dptrack.3"
	title(file, "dptrack")
	print ".SH NAME\ndptrack \\- record training runs from C\n.SH SYNOPSIS\n.nf\n#include <dptrack.h>\n\ncc prog.c $(pkg\\-config \\-\\-cflags \\-\\-libs dptrack)\n.fi\n.SH DESCRIPTION" > file
	body(file, overview)
	print ".SH TYPES\n.nf" > file
	n = split(types, lines, "\n")
	for (i = 1; i <= n; i++)
		print escape(lines[i]) > file
	print ".fi" > file
}
