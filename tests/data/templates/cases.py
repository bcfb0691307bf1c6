"""The templates that make_cases.py renders: (name, template, variables)."""

MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "  Grüße, 世界! 😀\n"},
    {"role": "assistant", "content": "Hi.", "tool_calls": [{"function": {"name": "add", "arguments": {"a": 2.5, "b": [1, None, True]}}}]},
    {"role": "tool", "content": "3"},
]
D = {
    "messages": MESSAGES, "n": 7, "f": 2.5, "s": "Hello World", "u": "aé世😀z", "empty": "", "yes": True, "no": False, "nil": None,
    "xs": [3, 1, 2], "words": ["b", "A", "c", "a"], "d": {"one": 1, "two": 2, "items": "shadowed", "keys": 5},
    "people": [{"name": "Ann", "age": 30, "tags": ["x"]}, {"name": "bob", "age": 25, "tags": []}, {"name": "Cid", "age": 30}],
}

# expression -> one case; named after itself
EXPRESSIONS = r"""
1 + 2 * 3 - 4 / 2
7 // 2 ~ '|' ~ -7 // 2 ~ '|' ~ -7 % 3 ~ '|' ~ 7 % -3
2 ** 3 ** 2
-2 ** 2
2 ** -1
7.5 // 2, 7.5 % 2, -7.5 % 2, 1e3, 1.5e-7, 1e16, 123456789012345.0, 1e22, 0.1 + 0.2, 100000.0, 1e-5, 5e-324, 1.7976931348623157e308
1 / 3
0x1F + 0b101 + 0o17 + 1_000
1_0.5_0
9223372036854775807
-9223372036854775807 - 1
'a' + "b" 'c'
'a' * 3 ~ 2 * 'xy' ~ [1, 2] * 2 ~ 'z' * -1
'\n\t\x41\u00e9\101\\\'\"|\q|'
"it's" ~ 'say "hi"'
[1, 'a', "it's", none, true, 2.0, [], {}, (), (1,), {'k': ['v']}]
['\n\t\\', 'é', '\x00\x1f\x7f\u200b\ufeff', "'", "'\"", '😀']
{'a': 1, 'b': {'c': none}, 2: 'two', none: 0, (1, 2): 3}
(1, 2) + (3,), [1] + [2]
1 < 2 < 3, 1 < 2 > 5, 1 == 1.0, 'a' < 'b', [1, 2] < [1, 3], true == 1
1 in [1, 2], 3 not in [1, 2], 'ell' in s, 'one' in d, 'x' in undef, 1 in (1,), 'z' not in s
not 1, not not '', true and 0, 0 or 'x', none or [] or 'last', 'a' and 'b'
'yes' if yes else 'no', 'no' if no, ('x' if no) is defined
'a' if no else 'b' if no else 'c'
1 is odd, 2 is even, 9 is divisibleby 3, 9 is divisibleby(4), n is odd
undef is defined, undef is undefined, nil is none, nil is defined, n is number, f is float, n is integer, yes is integer, yes is number, yes is boolean
s is string, xs is sequence, d is mapping, xs is iterable, s is iterable, n is iterable, d is sequence, undef is iterable, s is mapping
yes is true, no is false, 1 is true, n is eq 7, n is equalto(7), n is ne 8, n is gt 3, n is ge 7, n is lt 3, n is le(7), 1 is in [1], 1 is sameas 1
1 is not none, n is not odd, 'a' is lower, 'A' is upper, 'filter' is filter, 'tojson' is filter, 'odd' is test, range is callable, n is callable
undef, nil, yes, no, n, f
undef ~ '|' ~ nil ~ '|' ~ yes
s[0], s[-1], s[1:4], s[::-1], s[::2], s[-3:], s[:-1], s[10:2], s[100:], s[5:1:-2]
u, u|length, u[1], u[2], u[-2], u[::-1], u[1:3], u[3:], u|list
xs[0], xs[-1], xs[1:], xs[::-1], xs[5:], xs[-2:-1], xs[::2]
(1, 2, 3)[1:], (1, 2, 3)[::-1]
xs[10], xs['a'], d['none'], d.none, s[99], n.foo, (n.foo is defined)
xs.0, d.one, d['two'], d['items'], d['keys'], messages[0].role, messages[1]['content']
d.items() | list, d.keys() | list, d.values() | list
d.items(), d.keys(), d.values()
d.get('one'), d.get('x'), d.get('x', 'dflt'), d.get('x') is none
messages[2].tool_calls[0].function.arguments.b[1]
'  x y  '.strip() ~ '|', '  x '.lstrip() ~ '|', ' x  '.rstrip() ~ '|', 'xxaxx'.strip('x'), '\u3000 a\xa0'.strip() ~ '|'
'a,b,,c'.split(','), ' a  b c '.split(), 'a,b,c'.split(',', 1), 'a b  c d'.split(none, 2), ''.split(), ''.split(','), 'a--b--'.split('--')
'a,b,c'.rsplit(',', 1), ' a b  c '.rsplit(none, 1), 'a,b'.rsplit(','), 'abab'.rsplit('ab')
'a\nb\r\nc\rd\n'.splitlines(), 'a\nb\n'.splitlines(true), ''.splitlines()
s.startswith('Hell'), s.startswith(('x', 'He')), s.endswith('d'), s.endswith('x'), s.startswith('World', 6), s.startswith('')
s.upper(), s.lower(), 'hello wORLD it\'s'.title(), 'hELLO'.capitalize(), 'aBc'.swapcase(), 'straße'.upper(), 'ÀÉ'.lower(), u.upper()
s.replace('l', 'L'), s.replace('l', 'L', 1), 'ab'.replace('', '-'), 'aaa'.replace('aa', 'b'), 'ab'.replace('', '-', 2)
', '.join(['a', 'b']), '-'.join('abc'), ''.join([])
s.find('o'), s.find('o', 5), s.find('zz'), s.rfind('o'), u.find('世'), u.rfind('z'), s.index('W'), s.find(''), s.find('l', -3), s.find('H', 1, 3)
s.count('l'), s.count('l', 4), 'aaaa'.count('aa'), 'abc'.count(''), u.count('😀')
'a-b-c'.partition('-'), 'a-b-c'.rpartition('-'), 'abc'.partition('-'), 'abc'.rpartition('-')
'prefix-x'.removeprefix('prefix-'), 'x.txt'.removesuffix('.txt'), 'abc'.removeprefix('x')
'7'.zfill(3), '-7'.zfill(4), 'ab'.ljust(4) ~ '|', 'ab'.rjust(4), 'ab'.center(5) ~ '|', 'abc'.center(6, '*'), 'ab'.center(7, '-')
'12'.isdigit(), 'a1'.isdigit(), ''.isdigit(), 'ab'.isalpha(), 'a1'.isalnum(), ' '.isspace(), 'AB'.isupper(), 'ab'.islower(), 'A1'.isupper(), '1'.islower(), 'é'.isascii()
'{} and {}'.format(1, 'x'), '{0}{1}{0}'.format('a', 'b'), '{x:>5}|{y:<4}|{z:^5}'.format(x=1, y='a', z='m'), '{:.2f} {:05d} {:,}'.format(3.14159, 42, 1234567), '{{}}'.format(), '{:+d} {:x} {:#x} {:b}'.format(5, 255, 255, 5), '{0[a]} {0.b}'.format({'a': 1, 'b': 2}), '{!r}'.format('q'), '{:.3}'.format('abcdef'), '{:%} {:e} {:g}'.format(0.5, 12345.678, 0.0001), '{:*^9}'.format('mid'), '{:08.3f}'.format(-3.14159), '{:>6}'.format(2.5), '{:10.4}'.format(3.14159)
'%s is %d, %05.1f %x %r %%' % ('a', 3, 2.25, 255, 'q'), '%s' % 'x', '%(k)s-%(k)s' % {'k': 1}, '%5s|%-5s|%+d|% d' % ('a', 'b', 3, 4), '%c%c' % ('a', 98), '%.2s' % 'abc', '%e %g %G' % (12345.6, 1e-10, 1e20), '%d' % 3.99, '%s' % none, '%i %o' % (7, 8), '%03d' % -5, '%.3d' % 7
('The quick brown fox — jumped-over the lazy-dog--and 12-34 ran'|wordwrap(9)), ('averyverylongword is'|wordwrap(6)), ('averyverylongword is'|wordwrap(6, false)), ('a\n\n  b c\n '|wordwrap(3, wrapstring='|')), ('co-op-er-ate x-y'|wordwrap(4, break_on_hyphens=false)), ('世界 你好世界'|wordwrap(3)), ('re-entry of'|wordwrap(5, true)), ''|wordwrap
('a b/c?d=é&~._-'|urlencode), ({'a': 1, 'b c': 'x y/z'}|urlencode), ([('k', 'v'), ('k', none)]|urlencode), 12|urlencode
({'a': 1, 'b<': '"x"', 'c': none, 'd': undef}|xmlattr), ({'a': 1}|xmlattr(false)), ({}|xmlattr) ~ '|', ('a<b'|forceescape) ~ ''
0|filesizeformat, 1|filesizeformat, 999|filesizeformat, 1000|filesizeformat, 1024|filesizeformat(true), 123456789|filesizeformat, 1048576|filesizeformat(binary=true), 1e26|filesizeformat, '2048'|filesizeformat(true)
(d|attr('one')) is defined, (d|attr('keys')) is callable, (s|attr('upper'))(), (n|attr('nope')) is defined
xs|length, s|length, d|length, xs|count, undef|length, ''|length
'  a '|trim ~ '|', 'xax'|trim('x'), 5|trim
s|upper, s|lower, 'hello wORLD (foo) it\'s-me'|title, 'hELLO'|capitalize, none|upper, 12|string + 'x'
undef|default('x'), ''|default('x'), ''|default('x', true), none|d('y'), none|d('y', true), undef|d ~ '|', 0|default(5, boolean=true)
xs|join(', '), xs|join, people|join('/', attribute='name'), 'abc'|join('-'), [none, true, 1.5]|join(' ')
xs|first, xs|last, s|first, s|last, [] | first ~ '|', d|first, people|map(attribute='age')|first
xs|sort, xs|sort(reverse=true), words|sort, words|sort(case_sensitive=true), people|sort(attribute='age')|map(attribute='name')|list, people|sort(attribute='age,name', reverse=true)|map(attribute='name')|list
d|dictsort, d|dictsort(reverse=true), {'b': 1, 'A': 2}|dictsort, {'b': 1, 'A': 2}|dictsort(true), {'b': 1, 'a': 2}|dictsort(by='value')
xs|reverse|list, s|reverse, (1, 2)|reverse|list
['a', 'A', 'b', 'a']|unique|list, ['a', 'A', 'b', 'a']|unique(true)|list, people|unique(attribute='age')|map(attribute='name')|list
xs|min, xs|max, words|min, words|max(case_sensitive=true), people|max(attribute='age'), []|min ~ '|'
xs|sum, people|sum(attribute='age'), xs|sum(start=10), []|sum
people|map(attribute='name')|list, words|map('upper')|list, people|map(attribute='tags.0', default='-')|list, people|map(attribute='nope', default='?')|join, [1, 2]|map('string')|join('+'), ['1', 'x']|map('int', 9)|list
xs|select('odd')|list, xs|reject('odd')|list, [0, 1, '', 'a', none]|select|list, [0, 1]|reject|list, xs|select('gt', 1)|list, xs|select('in', [1, 9])|list, xs|select('divisibleby', 3)|list
people|selectattr('age', 'equalto', 30)|map(attribute='name')|list, people|rejectattr('age', 'equalto', 30)|list, people|selectattr('tags')|list, people|selectattr('tags', 'defined')|list|length, people|rejectattr('tags', 'undefined')|list|length
people|groupby('age'), people|groupby('tags.0', default='none')|length
messages|selectattr('role', '==', 'user')|list|length, messages|rejectattr('role', 'in', ['user', 'tool'])|map(attribute='role')|join(',')
d|items|list, undef|items|list, {'a': 1}.items()|list
'3'|int, '3.7'|int, 'x'|int, 'x'|int(-1), '0x1f'|int(base=16), '1f'|int(0, 16), 3.9|int, true|int, none|int, ' 42 '|int, '-7'|int, '1_000'|int, '0b11'|int(base=2), '12abc'|int, ''|int, '1e3'|int
'3.5'|float, 'x'|float, 2|float, 'x'|float(1.5), '1e3'|float, none|float, ' 2 '|float, '-inf'|float, 'nan'|float
42.55|round, 42.55|round(1), 2.5|round, 3.5|round, 42.551|round(1, 'floor'), 42.51|round(1, 'ceil'), 5|round, 1234|round(-2), 1234.5|round(-2), 2.675|round(2), 7|round(0, 'floor'), -0.5|round
-5|abs, (-5)|abs, -2.5|abs, 5|abs
'a\nb\n\nc'|indent, 'a\nb'|indent(2, true), 'a\n\nb'|indent(2, false, true), 'a\nb'|indent('> '), 'x'|indent(width=3, first=true)
('<a href="x">&\''|escape) ~ '|' ~ ('<b>'|e) ~ '|' ~ ('<b>'|safe) ~ (1|e)
'foo bar baz qux'|truncate(9), 'foo bar baz qux'|truncate(9, true), 'foo bar baz qux'|truncate(11), 'foo bar baz qux'|truncate(11, false, '...', 0), 'foo bar baz qux'|truncate(9, end='!')
'ab'|center(6) ~ '|', 'one two  three'|wordcount, '%s-%s'|format(1, 'b'), '%(a)s'|format(a=3)
[1, 2, 3, 4, 5]|batch(2)|list, [1, 2, 3]|batch(2, 'x')|list, [1, 2, 3, 4, 5]|slice(3)|list, [1, 2, 3, 4]|slice(3, 'x')|list
d|tojson, messages|tojson, [1, 2.0, none, true, 'é"\\\n\x01/']|tojson, 'é😀'|tojson(ensure_ascii=true), d|tojson(indent=2), []|tojson(indent=2), {}|tojson(indent=2), [[], {}, [1]]|tojson(indent=1), {'b': 1, 'a': 2}|tojson(sort_keys=true), {'a': [1]}|tojson(separators=(',', ':')), {1: 2, none: 3, true: 4, 1.5: 5}|tojson, (1, 2)|tojson, [1]|tojson(indent='--'), '\x7f\u2028'|tojson, {'a': {'b': []}}|tojson(indent=0)
range(3), range(1, 7, 2)|list, range(5, 0, -2)|list, range(0)|list, range(3)|length, range(10)[3], range(10)[-1], 3 in range(5), range(5)[1:3]|list, range(3)|sum
dict(a=1, b=2), dict([('x', 1)], y=2), dict({'p': 1}), namespace(a=1), namespace({'a': 2}).a
strftime_now('%Y-%m-%d'), strftime_now('%d %b %Y'), strftime_now('%A, %B %d, %Y %H:%M:%S %p %I %j %U %W %w %y %e %-d %%'), strftime_now('%a %F %T %D %G-W%V-%u %-m %-I')
1.0, -0.0, 1e100, 12345678.9, 1e15, 1e16, 0.0001, 0.00001, 3.0e0, 2.50
[1.0, -1.5e-9], {'x': 1e300 * 1e300}, 1e308 * 10 - 1e308 * 10
true, True, none, None, false, False
'a' ~ (1 + 2), 'a' ~ 2 * 3, 1 + (2 ~ 3)|int, 1 ~ 2 ~ 3, -1 ~ -2
1 if true else 2 if false else 3, (1, 2) if yes else 3
[1, 2,], (1, 2,), {'a': 1,}, []
d['one'] + d.two, (xs + [4])|last, (d|length) * 2, -xs[0], - n, + n
d.update, xs.append, s.__class__, d.__init__ is defined
(xs|map('string'))|list, (xs|select('odd')) is iterable, (xs|select('odd')) is string
xs == [3, 1, 2], d == {'one': 1, 'two': 2, 'items': 'shadowed', 'keys': 5}, (1, 2) == [1, 2], undef == undef2, undef == none, messages[0] == messages[0], 'a' != 'b', [1, [2.0]] == [1.0, [2]]
loop is defined, caller is defined
joiner is defined, cycler is defined, namespace is defined, lipsum2 is defined
('x'.upper)(), 'x'.upper is callable
xs|join(d='-'), xs.index(1), xs.count(3), (3, 1).index(1)
[[1, 2], [3]]|map('first')|list, [[3], [1, 2]]|map('length')|list, [[2, 1], [3]]|map('sort')|list
'abc'|list, 'abc'|sort, d|list, 'cab'|sort|join, 'aBC'|sort
range(10)[1:8:2], range(3)[::-1], range(5)[3:1], range(9)[::-3]|list, 'a' % undef
"é" < "z", "世" > "é", [1] < [1, 2], (1, 'a') < (1, 'b'), 2 > 1.5, true < 2
""".strip().split("\n")

FAILURES = r"""
undef.x
undef['x']
undef()
undef + 1
1 + 'a'
'a' + 1
none + 'x'
'a' + none
[1] + (2,)
1 / 0
1 // 0
1 % 0
1.0 / 0
n()
1 < 'a'
none < 1
undef < 1
1 in 5
1 in 'abc'
d|nosuchfilter
xs|xmlattr
s|wordwrap(0)
n|wordwrap
{'a b': 1}|xmlattr
[1]|urlencode
[(1, 2, 3)]|urlencode
none|filesizeformat
'x'|filesizeformat
d is nosuchtest
n|length
n|list
none|list
'abc'.nosuch()
xs|join(1, 2, 3)
'a'.split('')
d.items(1)
'abc'.index('z')
{}[[]].x
{[]: 1}
xs|sort(attribute='x.y')
[1, 'a']|sort
['a', 1]|max
range()
range(1, 2, 0)
range(100001)
d.update({'a': 1})
xs.append(1)
xs[::0]
d[1:]
n[:1]
xs['a':]
n|indent
nil|truncate
undef|tojson
namespace(1)
-'a'
-undef
undef|int
undef|round
'x'|round
xs|map|list
xs|map('nosuch')|list
xs|select('nosuch')|list
xs|selectattr|list
'%d' % 'x'
'%s %s' % ('a',)
'%s' % ('a', 'b')
'%y' % 1
'{} {}'.format(1)
'{x}'.format(1)
'{'.format(1)
'{:d}'.format('x')
strftime_now()
xs|items|list
'x'|dictsort
xs|last|length|length
(xs|select)|last
cycler()
'a' in none
'x'.join([1])
""".strip().split("\n")

REJECTED = r"""
{{ 1 + }}
{{ }}
{{ 'abc }}
{{ "abc }}
{{ (1 }}
{{ 1) }}
{{ [1, 2 }}
{{ {1} }}
{% if %}x{% endif %}
{% if 1 %}x
{% if 1 %}x{% endfor %}
{% for x in %}{% endfor %}
{% for x %}{% endfor %}
{% for 1 in x %}{% endfor %}
{% endif %}
{% else %}
{% foo %}
{% 1 %}
{% set %}
{% set x %}
{% set true = 1 %}
{% set 1 = x %}
{% set x = %}
{% macro %}{% endmacro %}
{% macro f(a=1, b) %}{% endmacro %}
{% macro f( %}{% endmacro %}
{% call 1 %}{% endcall %}
{% break %}
{% continue %}
{% raw %}x
{# x
{{ x
{% if x
{{ a b }}
{{ a | }}
{{ a | 1 }}
{{ a.  }}
{{ a.'x' }}
{{ a[ }}
{{ f(a=1, 2) }}
{{ f(**a, *b) }}
{{ x is }}
{{ x is defined is defined }}
{{ 1 = 2 }}
{{ a ! b }}
{{ a $ b }}
{{ '\x4' }}
{{ '\u12' }}
{{ 012 }}
{{ a ? b }}
{{ a if }}
{% for x in y if %}{% endfor %}
{% filter %}x{% endfilter %}
""".strip().split("\n")

TEMPLATES = [
    # white space
    ("trim_blocks", "a\n{% if true %}\nb\n{% endif %}\nc\n", {}),
    ("lstrip_blocks", "a\n   {% if true %}\n  b\n   {% endif %}\n c", {}),
    ("lstrip_not_after_text", "x   {% if true %} y {% endif %} z", {}),
    ("lstrip_plus", "a\n   {%+ if true %}b{% endif +%}\n c", {}),
    ("lstrip_not_variable", "a\n   {{ 1 }}\n   {#- c -#}\n   {# d #}\n e", {}),
    ("minus", "a \n {%- if true -%} \n b \n {%- endif -%} \n c", {}),
    ("minus_variable", "a  {{- 1 -}}  b {{- 2 }} c {{ 3 -}} d", {}),
    ("plus_sign_of_variable", "{{+1}} {{-1}} {{ +1 }}", {}),
    ("trailing_newline", "a\n\n", {}),
    ("only_newline", "\n", {}),
    ("crlf", "a\r\n{% if true %}\r\nb\r{% endif %}\r\n'{{ 'x\r\ny' }}'\r\n", {}),
    ("comment", "a{# no {{ x }} {% if %} #}b\n{# whole line #}\nc {#- x -#} d {# -#}\n\n e", {}),
    ("comment_trims", "a\n  {# c #}\n  b\n", {}),
    ("comment_minus_inside", "{#- a - b -#}x{#-#}y{##}z", {}),
    ("raw", "a {% raw %}{{ x }}{% if %}{# c #}{% endraw %} b", {}),
    ("raw_trims", "a\n  {% raw %}\n {{ x }}\n  {% endraw %}\n b {%- raw -%}  z  {%- endraw -%}  y", {}),
    ("unicode_space", "a\u3000{%- if true -%}\u00a0b{% endif %}\u2003c", {}),
    ("data_only", "no tags { } {x} %} }} #} \u4e16\u754c", {}),
    ("empty", "", {}),
    ("brace_at_end", "x{", {}),
    ("nested_braces", "{{ {'a': {'b': 1}} }}{{ {'a': {}}['a'] }}", {}),
    ("tag_on_tag", "{% if true %}{% if true %}x{% endif %}{% endif %}\n\ny", {}),
    ("multi_line_tag", "{%\n if\n true\n%}x{%\nendif\n%}{{\n1\n}}", {}),
    ("print_newline_kept", "{{ 1 }}\n{{ 2 }}\n", {}),
    # if
    ("if_chain", "{% for x in [0, 1, 2, 3] %}{% if x == 0 %}a{% elif x == 1 %}b{% elif x == 2 %}c{% else %}d{% endif %}{% endfor %}", {}),
    ("if_without_else", "[{% if no %}x{% endif %}]", D),
    ("if_truth", "{% for x in [0, 1, '', 'a', [], [0], {}, {'a': 1}, none, true, 0.0, 0.1, undef, range(0), range(1), ()] %}{{ 1 if x else 0 }}{% endfor %}", {}),
    ("if_colon", "{% if true: %}x{% endif %}", {}),
    # for
    ("for_loop_fields", "{% for x in 'abc' %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.depth }}{{ loop.depth0 }};{% endfor %}", {}),
    ("for_neighbours", "{% for x in xs %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }}{{ loop.previtem is defined }} {% endfor %}", D),
    ("for_cycle_changed", "{% for x in [1, 1, 2, 2, 1] %}{{ loop.cycle('a', 'b') }}{{ loop.changed(x) }} {% endfor %}", {}),
    ("for_else", "{% for x in [] %}x{% else %}none{% endfor %}{% for x in [1] %}x{% else %}none{% endfor %}", {}),
    ("for_else_after_break", "{% for x in [1] %}{% break %}{% else %}none{% endfor %}{% for x in [1, 2] %}{% if x == 2 %}{% break %}{% endif %}{% else %}none{% endfor %}", {}),
    ("for_else_after_continue", "{% for x in [1, 2] %}{{ x }}{% continue %}{% else %}none{% endfor %}{% for x in [1, 2] %}{% if x == 1 %}{% continue %}{% endif %}{{ x }}{% else %}none{% endfor %}", {}),
    ("for_if", "{% for x in range(10) if x is odd and x > 2 %}{{ loop.index }}:{{ x }}/{{ loop.length }} {% else %}none{% endfor %}", {}),
    ("for_if_all_out", "{% for x in [1] if x > 5 %}x{% else %}none{% endfor %}", {}),
    ("for_unpack", "{% for k, v in d.items() %}{{ k }}={{ v }},{% endfor %}{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}{% for (a, b) in [[1, 2]] %}{{ a }}{{ b }}{% endfor %}", D),
    ("for_unpack_wrong", "{% for a, b in [(1, 2, 3)] %}{{ a }}{% endfor %}", {}),
    ("for_unpack_no_sequence", "{% for a, b in [1] %}{{ a }}{% endfor %}", {}),
    ("for_dict_string", "{% for k in d %}{{ k }} {% endfor %}{% for c in u %}{{ c }}|{% endfor %}", D),
    ("for_undefined", "[{% for x in undef %}x{% else %}e{% endfor %}]", {}),
    ("for_none", "{% for x in none %}x{% endfor %}", {}),
    ("for_number", "{% for x in 3 %}x{% endfor %}", {}),
    ("for_break_continue", "{% for x in range(10) %}{% if x == 2 %}{% continue %}{% endif %}{% if x == 5 %}{% break %}{% endif %}{{ x }}{% endfor %}.", {}),
    ("for_break_nested", "{% for x in 'ab' %}{% for y in 'cd' %}{% if y == 'd' %}{% break %}{% endif %}{{ x }}{{ y }}{% endfor %}{% endfor %}", {}),
    ("for_nested_loop", "{% for x in 'ab' %}{% set outer = loop %}{% for y in 'cd' %}{{ outer.index }}{{ loop.index }} {% endfor %}{{ loop.last }}{% endfor %}", {}),
    ("for_recursive", "{% for n in tree recursive %}[{{ n.v }}{{ loop.depth }}{% if n.c %}{{ loop(n.c) }}{% endif %}]{% endfor %}", {"tree": [{"v": 1, "c": [{"v": 2}, {"v": 3, "c": [{"v": 4}]}]}, {"v": 5}]}),
    ("for_tuple_literal", "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}", {}),
    ("for_generator_once", "{% set g = xs|map('string') %}{{ g|list }}{{ g|list }}{% for x in xs|select('odd') %}{{ x }}{{ loop.last }}{{ loop.length }}{% endfor %}", D),
    ("for_scope", "{% set x = 1 %}{% for y in [1, 2] %}{{ x }}{% set x = x + 10 %}{{ x }} {% endfor %}{{ x }}{{ y is defined }}", {}),
    ("for_scope_turns", "{% for y in [1, 2] %}{{ z is defined }}{% set z = y %}{{ z }} {% endfor %}", {}),
    ("for_shadows", "{% set y = 'outer' %}{% for y in [1] %}{{ y }}{% endfor %}{{ y }}", {}),
    ("loop_outside", "{{ loop is defined }}{% for x in [1] %}{% endfor %}{{ loop is defined }}", {}),
    ("loop_recursive_call_without_mark", "{% for x in [1] %}{{ loop([2]) }}{% endfor %}", {}),
    # set
    ("set_if_leaks", "{% if true %}{% set x = 1 %}{% endif %}{{ x }}{% if false %}{% set y = 1 %}{% endif %}{{ y is defined }}", {}),
    ("set_tuple", "{% set a, b = 1, 2 %}{{ a }}{{ b }}{% set a, b = b, a %}{{ a }}{{ b }}{% set t = 1, 2 %}{{ t }}{% set (c, d2) = 'xy' %}{{ c }}{{ d2 }}", {}),
    ("set_namespace", "{% set ns = namespace(n=0, found=false) %}{% for x in [1, 2, 3] %}{% set ns.n = ns.n + x %}{% set ns.new = x %}{% endfor %}{{ ns.n }}{{ ns.found }}{{ ns.new }}{{ ns.none is defined }}{{ ns['n'] }}", {}),
    ("set_namespace_tuple", "{% set ns = namespace() %}{% set ns.a, ns.b = 1, 2 %}{{ ns.a }}{{ ns.b }}{{ ns }}", {}),
    ("set_attribute_of_dict", "{% set d.x = 1 %}", D),
    ("set_block", "{% set x %}a{{ 1 + 1 }}b{% endset %}[{{ x }}]{{ x|length }}{{ x is string }}", {}),
    ("set_block_filter", "{% set x | upper | trim %}  abc {% endset %}[{{ x }}]", {}),
    ("set_block_scope", "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y is defined }}", {}),
    ("set_context_variable", "{{ s }}{% set s = 'new' %}{{ s }}{% for i in [1] %}{{ s }}{% endfor %}", D),
    ("set_hides_before", "{% for i in [1] %}[{{ s }}]{% endfor %}{% set s = 'new' %}{{ s }}", D),
    ("set_in_if_does_not_hide", "{% for i in [1] %}[{{ s }}]{% endfor %}{% if true %}{% set s = 'new' %}{% endif %}{{ s }}", D),
    ("set_mentioned_first", "{{ s }}{% for i in [1] %}[{{ s }}]{% endfor %}{% set s = 'new' %}{{ s }}", D),
    ("set_block_hides", "{% set s %}<{{ s }}>{% endset %}{{ s }}", D),
    ("set_macro_hides", "{% macro f() %}[{{ s }}]{% endmacro %}{{ f() }}{% set s = 'new' %}{{ f() }}", D),
    ("set_loop_body_hides", "{% for i in [1] %}{% for j in [1] %}[{{ s }}]{% endfor %}{% set s = 'new' %}{{ s }}{% endfor %}{{ s }}", D),
    ("set_loop_body_alias", "{{ s }}{% for i in [1] %}{% for j in [1] %}[{{ s }}]{% endfor %}{% set s = 'new' %}{{ s }}{% endfor %}{{ s }}", D),
    # macro
    ("macro", "{% macro f(a, b=2, c='x') %}{{ a }}{{ b }}{{ c }};{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(1, c='z') }}{{ f(b=5, a=4) }}{{ f() }}", {}),
    ("macro_default_uses_earlier", "{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 2) }}", {}),
    ("macro_varargs", "{% macro f(a) %}{{ a }}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, 3, x=4) }}{{ f(1) }}", {}),
    ("macro_too_many", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}", {}),
    ("macro_unknown_keyword", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(x=2) }}", {}),
    ("macro_missing_argument", "{% macro f(a) %}[{{ a }}]{{ a is defined }}{% endmacro %}{{ f() }}", {}),
    ("macro_missing_used", "{% macro f(a) %}{{ a.x }}{% endmacro %}{{ f() }}", {}),
    ("macro_recursive", "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(4) }}", {}),
    ("macro_sees_globals", "{% set x = 1 %}{% macro f() %}{{ x }}{{ s }}{% set x = 5 %}{{ x }}{% endmacro %}{% set x = 2 %}{{ f() }}{{ x }}", D),
    ("macro_not_loop_vars", "{% macro f() %}{{ y is defined }}{% endmacro %}{% for y in [1] %}{{ f() }}{% endfor %}", {}),
    ("macro_in_loop", "{% for y in [1, 2] %}{% macro f() %}<{{ y }}>{% endmacro %}{{ f() }}{% endfor %}", {}),
    ("macro_strips", "{% macro f() -%}\n  a\n{%- endmacro %}[{{ f() }}]{{ f()|length }}", {}),
    ("macro_as_value", "{% macro f(x) %}<{{ x }}>{% endmacro %}{% set g = f %}{{ g(1) }}{{ f.name }}{{ f is callable }}{% set ns = namespace(f=f) %}{{ ns.f(2) }}", {}),
    ("macro_spread", "{% macro f(a, b, c) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(*[1, 2], c=3) }}{{ f(*xs) }}{{ f(**{'a': 7, 'b': 8}) }}{{ f(1, *[2, 3]) }}", D),
    ("call_block", "{% macro f(t) %}<{{ t }}>{{ caller() }}</{{ t }}>{% endmacro %}{% call f('b') %}in{{ 1 }}{% endcall %}", {}),
    ("call_block_arguments", "{% macro f(xs) %}{% for x in xs %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}{% call(a, b=0) f('xy') %}[{{ a }}{{ b }}]{% endcall %}", {}),
    ("call_block_unused", "{% macro f() %}x{% endmacro %}{% call f() %}y{% endcall %}", {}),
    ("caller_undefined", "{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}", {}),
    ("filter_block", "a{% filter upper %}b{{ 'c' }}{% for x in 'de' %}{{ x }}{% endfor %}{% endfilter %}f{% filter replace('x', 'y')|trim %} xx {% endfilter %}", {}),
    ("with", "{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% set c = 3 %}{% endwith %}{{ a }}{{ c is defined }}{% with %}x{% endwith %}", {}),
    ("generation", "a{% generation %}b{{ 1 }}{% set x = 1 %}{% endgeneration %}c{{ x is defined }}", {}),
    ("joiner", "{% set j = joiner(', ') %}{% for x in 'abc' %}{{ j() }}{{ x }}{% endfor %}{% set k = joiner() %}{{ k() }}{{ k() }}", {}),
    ("cycler", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.current }}{{ c.next() }}{{ c.next() }}{{ c.reset() }}{{ c.current }}", {}),
    ("raise", "a{{ raise_exception('No ' ~ s ~ '!') }}b", D),
    ("raise_in_loop", "{% for m in messages %}{% if m.role == 'tool' %}{{ raise_exception('tool: \u4e16\u754c') }}{% endif %}{% endfor %}", D),
    ("raise_not_reached", "{% if false %}{{ raise_exception('x') }}{% endif %}ok", {}),
    ("unknown_filter_in_dead_branch", "{% if false %}{{ 1|nosuch }}{% endif %}ok", {}),
    ("tools_default", "{{ tools is none }}{{ documents is none }}{{ tools is defined }}{{ messages is defined }}", {}),
    ("tools_given", "{{ tools }}", {"tools": [1]}),
    ("variable_wins_over_global", "{{ range }}{{ dict }}", {"range": 1, "dict": "x"}),
    ("group_attributes", "{% for g in people|groupby('age') %}{{ g.grouper }}:{{ g.list|map(attribute='name')|join(',') }} {% endfor %}{% for age, them in people|groupby('age') %}{{ age }}{{ them|length }}{% endfor %}", D),
    ("dict_method_beats_key", "{% for k, v in d.items() %}{{ k }}{% endfor %}{{ d['items'] }}{{ d.keys()|length }}", D),
    ("no_autoescape", "{{ '<&>\"' }}{{ '<' ~ '>' }}", {}),
    ("json_numbers", "{{ x }} {{ x|tojson }}", {"x": [0, -1, 1.0, 1e20, 1.5e-8, 12345678901234567, 0.1, 100.0, -0.0]}),
    ("json_deep", "{{ x|tojson }} {{ x }}", {"x": {"a": [{"b": {"c": [[[]]]}}], "\u00e9\n": "\u2028\u0000\u007f"}}),
    ("conversation", "{% for m in messages %}{{ loop.index0 }}<|{{ m['role'] }}|>{{ m.content | trim }}{% if m.tool_calls %}{% for t in m.tool_calls %}{{ t.function | tojson }}{% endfor %}{% endif %}\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}", {**D, "add_generation_prompt": True}),
    ("loop_with_hash_index", "{% set d2 = dict(d, a=1, b=2, c=3, e=4, f=5, g=6, h=7, i=8, j=9) %}{{ d2 }}{{ d2.j }}{{ d2.one }}{{ 'q' in d2 }}{{ d2|length }}{{ dict(d2, j=10).j }}", D),
    ("deep_recursion", "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}", {}),
    ("string_escapes_surrogates", "{{ '\\u00e9\\U0001f600' }}{{ 'a\\\nb' }}", {}),
    ("deep_parentheses", "{{ " + "(" * 60 + "1" + ")" * 60 + " }}", {}),
    ("many_operands", "{{ " + " + ".join(["1"] * 150) + " }}", {}),
    ("many_elifs", "{% if n == 99 %}x" + "".join("{%% elif n == %d %%}%d" % (i + 50, i) for i in range(40)) + "{% else %}last{% endif %}", {"n": 80}),
]

CASES = []
CASES += [("expression: " + e, "{{ (" + e + ") }}", D) for e in EXPRESSIONS]
CASES += [("fails: " + e, "{{ " + e + " }}", D) for e in FAILURES]
CASES += [("rejects: " + e, e, {}) for e in REJECTED]
CASES += TEMPLATES
