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
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/protocol.md"), encoding: .utf8)
        #expect(page.contains("| `\(name)` |"))
    }

    @Test("The protocol page states the defaults of the server that are not the relay's")
    func defaults() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let page = try String(contentsOf: root.appending(path: "docs/protocol.md"), encoding: .utf8)
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
            ("", "JSON object"), ("[1]", "JSON object"), ("{\"maximumRooms\": 1", "JSON object"), ("7", "JSON object"),
            ("{\"maximumRoms\": 7}", "“maximumRoms”"),
            ("{\"maximumRooms\": 0}", "“maximumRooms” must be a whole number"),
            ("{\"maximumRooms\": 1.5}", "“maximumRooms”"), ("{\"maximumRooms\": \"7\"}", "“maximumRooms”"),
            ("{\"maximumRooms\": null}", "“maximumRooms”"), ("{\"maximumRooms\": true}", "“maximumRooms”"),
            ("{\"maximumRooms\": {}}", "“maximumRooms”"), ("{\"maximumRooms\": 1e300}", "“maximumRooms”"),
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
}
