import RoomProtocol
import TestTools
import Testing

@Suite("The room in the URL", .timeLimit(.minutes(1)))
struct RoomPathTests {
    @Test(
        "A room's path is its name in NFC, percent-encoded but for unreserved characters",
        arguments: [
            ("lab", "/rooms/lab"),
            ("Az09-._~", "/rooms/Az09-._~"),
            ("two words", "/rooms/two%20words"),
            ("a/b?c#d%", "/rooms/a%2Fb%3Fc%23d%25"),
            ("caf\u{e9}", "/rooms/caf%C3%A9"),
            ("cafe\u{301}", "/rooms/caf%C3%A9"),
            ("\u{1F916}", "/rooms/%F0%9F%A4%96"),
        ]
    )
    func writing(name: String, path: String) {
        #expect(RoomPath.path(ofRoom: name) == path)
        #expect(RoomPath(reading: path) == .room(name))
    }

    @Test("Names that are path segments of another meaning are left to `join`", arguments: [".", ".."])
    func dotSegments(name: String) {
        #expect(RoomPath.path(ofRoom: name) == "/")
        #expect(RoomPath(reading: "/rooms/\(name)") == .room(name))
    }

    @Test("A path without a room admits any room, one with a room admits that one alone")
    func admission() throws {
        #expect(RoomPath(reading: "/") == .anyRoom)
        #expect(RoomPath(reading: "/?token=x") == .anyRoom)
        #expect(RoomPath.anyRoom.admits(room: "lab"))
        let lab = try #require(RoomPath(reading: "/rooms/caf%c3%a9?x=/y"))
        #expect(lab.admits(room: "cafe\u{301}"))
        #expect(!lab.admits(room: "cafe"))
    }

    @Test(
        "A path that names no room is refused",
        arguments: [
            "/rooms", "/rooms/", "/rooms/a/", "/rooms/a/b", "/room/a", "/x", "rooms/a", "/rooms/%", "/rooms/%4",
            "/rooms/%zz", "/rooms/%+1", "/rooms/%ff", "/rooms/%c3", "//rooms/a", "/Rooms/a", "/rooms/?a",
        ]
    )
    func refusals(path: String) {
        #expect(RoomPath(reading: path) == nil)
    }

    @Test("Every name comes back from its path, and hostile paths are read without a trap")
    func properties() {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<2_000 {
            let scalars = (0..<Int.random(in: 1...40, using: &generator)).compactMap { _ in
                Unicode.Scalar(UInt32.random(in: 0...0x2FFF, using: &generator))
            }
            var name = ""
            name.unicodeScalars.append(contentsOf: scalars)
            let path = RoomPath.path(ofRoom: name)
            #expect(path.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f })
            #expect(RoomPath(reading: path)?.admits(room: name) == true)
            _ = RoomPath(reading: name)
            _ = RoomPath(reading: "/rooms/" + name)
            _ = RoomPath(reading: String(path.dropLast()))
        }
    }
}
