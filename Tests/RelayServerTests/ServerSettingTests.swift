import FoundationEssentials
import MediaCore
import RelayCore
import Testing
import WebSockets

@testable import RelayServer

@Suite("Settings of a server")
struct ServerSettingTests {
    private func applied(_ json: String) throws -> RelayServer.Options {
        var options = RelayServer.Options()
        try options.apply(settings: Data(json.utf8))
        return options
    }

    private func protocolPage() throws -> String {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        return try String(contentsOf: root.appending(path: "docs/protocol.md"), encoding: .utf8)
    }

    /// The names of the values in a structure, those within others with a dot.
    private func names(in value: Any, prefix: String = "") -> [String] {
        Mirror(reflecting: value).children.flatMap { child -> [String] in
            let name = prefix + (child.label ?? "")
            switch child.value {
            case is Int, is Duration, is DataSize, is Bitrate: return [name]
            default: return names(in: child.value, prefix: name + ".")
            }
        }
    }

    @Test("Every setting of the relay can be set under its name")
    func completeness() {
        let all = ServerSetting.all.map(\.name)
        #expect(Set(all).count == all.count)
        #expect(Set(names(in: RelaySettings())).subtracting(all).isEmpty)
    }

    @Test("Each setting has a row in the protocol page's table of limits", arguments: ServerSetting.all.map(\.name))
    func documentation(name: String) throws {
        let page = try protocolPage()
        #expect(page.contains("| `\(name)` |"))
    }

    @Test("The protocol page states the defaults of the server that are not the relay's")
    func defaults() throws {
        let page = try protocolPage()
        let options = RelayServer.Options()
        #expect(page.contains("| `maximumConnections` | \(options.maximumConnections / 1000),000 |"))
        let times = [
            ("handshakeTimeout", options.handshakeTimeout), ("idle.pingAfter", options.idle.pingAfter),
            ("idle.hangUpAfter", options.idle.hangUpAfter),
            ("idle.hangUpStoppedAfter", options.idle.hangUpStoppedAfter),
        ]
        for (name, time) in times { #expect(page.contains("| `\(name)` | \(Int(time.seconds)) s |"), "\(name)") }
    }

    @Test("Each setting can be set to its own value, and only that changes", arguments: ServerSetting.all.map(\.name))
    func each(name: String) throws {
        let before = RelayServer.Options()
        let value = try #require(ServerSetting.all.first { $0.name == name }).value(in: before)
        let same = try applied("{\"\(name)\": \(value)}")
        for setting in ServerSetting.all { #expect(setting.value(in: same) == setting.value(in: before)) }
    }

    // The server refused it, because of a setting that the file does not name.
    @Test("The protocol page's example of a settings file can be used")
    func example() throws {
        let page = try protocolPage()
        let example = try #require(page.firstMatch(of: /`(\{"maximumRooms".*?\})`/)).output.1
        let options = try applied(String(example))
        #expect(options.relay.maximumRooms == 10 && options.relay.joinTimeout == .seconds(5))
        #expect(options.idle.hangUpAfter == .seconds(60) && options.idle.hangUpStoppedAfter == .seconds(60))
        // Stated, it is not changed.
        #expect(throws: SettingsError.self) {
            try applied(#"{"idle.hangUpAfter": 60, "idle.hangUpStoppedAfter": 50}"#)
        }
    }

    // It became a pause of 0 s: the publisher was asked for a keyframe in every turn of the loop.
    @Test("A time of less than a millisecond is refused", arguments: ["1e-10", "0.0009"])
    func shortest(time: String) throws {
        #expect(throws: SettingsError.self) { try applied("{\"keyframes.interval\": \(time)}") }
        #expect(try applied("{\"keyframes.interval\": 0.001}").relay.keyframes.interval == .milliseconds(1))
    }

    @Test("Counts, seconds and bytes are taken over, and what is left out stays")
    func values() throws {
        let options = try applied(
            """
            {"maximumRooms": 7, "joinTimeout": 2.5, "maximumOutbox": 65536, "idle.pingAfter": 1, "idle.hangUpAfter": 3}
            """
        )
        #expect(options.relay.maximumRooms == 7 && options.relay.joinTimeout == .milliseconds(2500))
        #expect(options.relay.maximumOutbox == DataSize(bytes: 65_536))
        #expect(options.idle.pingAfter == .seconds(1) && options.idle.hangUpAfter == .seconds(3))
        #expect(options.relay.messageBurst == RelaySettings().messageBurst)
        #expect(try applied("{}").relay.maximumRooms == RelaySettings().maximumRooms)
    }

    @Test(
        "An unusable setting is refused with a sentence that names it, and changes nothing",
        arguments: [
            ("", "JSON object"), ("[1]", "JSON object"), ("7", "JSON object"),
            ("{\"maximumRoms\": 7}", "“maximumRoms”"),
            ("{\"maximumRooms\": 0}", "“maximumRooms” must be a whole number"),
            ("{\"maximumRooms\": 1.5}", "“maximumRooms”"), ("{\"maximumRooms\": \"7\"}", "“maximumRooms”"),
            ("{\"maximumRooms\": null}", "“maximumRooms”"), ("{\"maximumRooms\": true}", "“maximumRooms”"),
            ("{\"maximumRooms\": {}}", "“maximumRooms”"), ("{\"maximumRooms\": 1e300}", "“maximumRooms”"),
            ("{\"joinTimeout\": 1e400}", "“joinTimeout” must be"),
            ("{\"joinTimeout\": 1e-400}", "“joinTimeout” must be"),
            ("{\"joinTimeout\": -1}", "“joinTimeout” must be a number of seconds"),
            ("{\"joinTimeout\": 86401}", "86400"),
            ("{\"idle.pingAfter\": 46}", "“idle.hangUpAfter”"), ("{\"stream.liveWindow\": 0.5}", "“stream.liveWindow”"),
        ]
    )
    func refused(json: String, words: String) throws {
        var options = RelayServer.Options()
        let error = #expect(throws: SettingsError.self) {
            try options.apply(settings: Data(("" + json).utf8))
        }
        #expect("\(try #require(error))".contains(words))
        #expect(options.relay.maximumRooms == RelaySettings().maximumRooms)
    }

    // The decoder of Foundation took the last of several values, passed over a comma too many, and said of every other
    // mistake only that the file is no object.
    @Test(
        "A file that is not strict JSON, or sets something twice, is refused with the place",
        arguments: [
            ("{\"joinBurst\": 3, \"joinBurst\": 4}", "“joinBurst” is set twice, at line 1, column 2 and line 1, "),
            ("{\"joinTimeout\": 3,\n \"join\\u0054imeout\": 3}", "twice, at line 1, column 2 and line 2, column 2"),
            ("{\"joinTimeout\": 3,}", "line 1, column 18: nothing follows this comma; leave it out"),
            ("{\"joinTimeout\": 3", "line 1, column 18: a comma or “}” must be here, and the file ends"),
            ("{\r\n  \"joinBurst\": 3\r\n  \"x\": 4\r\n}", "line 3, column 3: a comma or “}” must be here, not “\"”"),
            ("{\"joinTimeout\": }", "line 1, column 17: a number must be here, not “}”"),
            ("{\"joinTimeout\" 3}", "line 1, column 16: a colon must be here, not “3”"),
            ("{joinTimeout: 3}", "line 1, column 2: a name in double quotes must be here, not “j”"),
            ("{'joinTimeout': 3}", "line 1, column 2: a name in double quotes must be here, not “'”"),
            ("{\"joinTimeout\": 3} // x", "line 1, column 20: nothing but the end of the file must be here, not “/”"),
            ("{\"joinTimeout\": 03}", "line 1, column 17: “03” is no number in JSON"),
            ("{\"joinTimeout\": +3}", "“+3” is no number"), ("{\"joinTimeout\": .3}", "“.3” is no number"),
            ("{\"joinTimeout\": 3.}", "“3.” is no number"), ("{\"joinTimeout\": 0x3}", "“0x3” is no number"),
            ("{\"joinTimeout\": NaN}", "“NaN” is no number"), ("{\"joinTimeout\": 5s}", "“5s” is no number"),
            ("{\"join\nTimeout\": 3}", "line 1, column 2: the closing quote of this text is missing"),
            ("{\"join", "line 1, column 2: the closing quote"), ("{\"join\\", "line 1, column 2: the closing quote"),
            ("{\"join\\x\": 3}", "line 1, column 2: this text has a backslash"),
            ("{", "column 2: a name in double quotes must be here, and the file ends"),
            ("{\"joinBurst\": ?}", "line 1, column 15: a number must be here, not “?”"),
            ("\u{FEFF}{\"é\": ?}", "line 1, column 7: a number must be here, not “?”"),
            ("{\"joinBurst\":\u{A0}3}", "line 1, column 14: a number must be here, not U+00A0"),
            ("{\"joinBurst\": 3[", "line 1, column 16: a comma or “}” must be here, not “[”"),
            ("{\"joinBurst\": 3{\"joinTimeout\": 5}", "a comma or “}” must be here, not “{”"),
            ("{\"join\tBurst\": 3}", "line 1, column 7: a tab or another control character in a text; write \\u0009"),
            ("{\"\\uD800\": 3}", "line 1, column 2: this text has a backslash"),
        ]
    )
    func notJSON(json: String, words: String) throws {
        let error = #expect(throws: SettingsError.self) { _ = try applied(json) }
        #expect("\(try #require(error))".contains(words))
    }

    @Test(
        "A name that is nearly a setting's, or its last part, is answered with that setting's",
        arguments: [
            ("maximumRoms", "there is no setting “maximumRoms”; did you mean “maximumRooms”? All are in docs"),
            ("jointimeout", "did you mean “joinTimeout”?"), ("liveWindow", "did you mean “stream.liveWindow”?"),
            ("colour", "there is no setting “colour”; all are in docs/protocol.md, section 11"),
            ("WireFormat.x", "“WireFormat.x” belongs to the protocol"), ("a\\u001b[1m", "“a\u{FFFD}[1m”"),
        ]
    )
    func unknown(name: String, words: String) throws {
        let error = #expect(throws: SettingsError.self) { _ = try applied("{\n\"\(name)\": 1}") }
        let text = "\(try #require(error))"
        #expect(text.hasPrefix("line 2, column 1: ") && text.contains(words), "\(text)")
    }

    @Test(
        "A value that is no number is answered with what it must be, and what it is",
        arguments: [
            ("\"5\"", "a text"), ("true", "true"), ("null", "null"), ("[5]", "a list"), ("{\"a\": 5}", "an object"),
        ]
    )
    func wrongType(value: String, kind: String) throws {
        let error = #expect(throws: SettingsError.self) { _ = try applied("{\"joinTimeout\": \(value)}") }
        let rule = "“joinTimeout” must be a number of seconds, at least 0.001 and at most 86400"
        #expect("\(try #require(error))" == "line 1, column 2: \(rule), not \(kind)")
    }

    @Test("Strict JSON of any layout is read, also with a byte order mark")
    func layouts() throws {
        for json in ["\u{FEFF}{\"joinTimeout\":2.5e0}", " {\t\"joinTimeout\"\r\n:\n2.50 ,\"joinBurst\": 3}\n"] {
            #expect(try applied(json).relay.joinTimeout == .milliseconds(2500))
        }
        #expect(try applied(" { } ").relay.joinTimeout == RelaySettings().joinTimeout)
        var options = RelayServer.Options()
        let error = #expect(throws: SettingsError.self) { try options.apply(settings: Data([0x7B, 0xFF, 0x7D])) }
        #expect(error?.description == "it is not text in UTF-8")
    }

    @Test("A settings file that is cut anywhere is refused")
    func truncated() throws {
        let whole = "{\"joinTimeout\": 2.5, \"maximumRooms\": 10}"
        for length in 0..<whole.utf8.count {
            #expect(throws: SettingsError.self) { _ = try applied(String(whole.prefix(length))) }
        }
    }
}
