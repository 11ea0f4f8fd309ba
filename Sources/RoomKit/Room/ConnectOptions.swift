import FoundationEssentials
import Glibc
import RoomProtocol
import WebSockets

/// The server, room, identity and tracks to connect with.
public struct ConnectOptions: Sendable {
    /// The server, as `ws://host:port`; `wss://` is not supported yet.
    ///
    /// If the URL has no path, the path of the room, `/rooms/NAME`, is added to it. The default is `defaultURL`.
    public var url = ConnectOptions.defaultURL
    /// The room's name; the server creates the room for its first participant.
    ///
    /// A name has 1 to 128 bytes of UTF-8 without control characters; the server refuses other names.
    public var roomName: String
    /// The name under which this program joins, with the same limits as `roomName`.
    ///
    /// It is unique in the room: a second participant with the same name replaces the first.
    public var identity: String
    /// The access token, if the server requires one; servers of version 0.1 ignore it.
    public var accessToken: String?
    /// Tracks that are published right after joining, all at the same time, with default options.
    public var videoTracks: [LocalVideoTrack] = []
    /// Whether one of `videoTracks` that cannot be published makes connecting fail; `true` by default.
    ///
    /// Otherwise `RoomEvent.localTrackFailed` reports it, and the session goes on with the others, so that one camera
    /// that is absent does not keep the rest away.
    public var areVideoTracksRequired = true
    /// Whether this program subscribes to every track of the other participants as soon as it is published.
    ///
    /// A track that is subscribed to is encoded, sent and decoded, also without a renderer. Turn it off in a program that
    /// only publishes.
    public var isAutomaticSubscriptionEnabled = true
    /// The largest number of tracks that are received at once; 0 for none.
    ///
    /// Each received track takes a thread and a decoder, and the other participants decide how many tracks there are. A
    /// track above the limit is not received: `RoomEvent.trackSubscriptionFailed` reports it. Once another track has
    /// ended, it is subscribed to.
    public var maximumReceivedTracks = 32
    /// The path of a file in which the inputs of the rate control are recorded; `nil` for no recording.
    ///
    /// The file must not exist. `room-client adapt replay` makes the same decisions from it again.
    public var adaptationLog: String?
    /// The TCP congestion control of the connection, such as "cubic" or "bbr"; `nil` for the system's own.
    ///
    /// With CUBIC, the default, a publisher uses more of a path that changes than with BBR, and frames are on time more
    /// often, because BBR holds back what is sent every 10 s. On a path that loses one packet of a hundred or more, BBR
    /// carries more. If the system does not allow it, its own stays.
    public var congestionControl: String? = TCPPath.latencyControl
    /// The program and version that the server logs for this client.
    public var clientName = "RoomKit/\(roomKitVersion)"

    /// Creates options for `roomName`; the identity is this machine's name with four random characters.
    public init(roomName: String) {
        self.roomName = roomName
        self.identity = Self.makeIdentity()
    }

    /// Creates options with an access token; `build` fills in the rest and must set `roomName`.
    public init(token: String, _ build: (inout ConnectOptions) -> Void) {
        self.init(roomName: "")
        self.accessToken = token
        build(&self)
    }

    /// The URL in the environment variable `ROOM_URL`; `ws://127.0.0.1:8480` if that is not set or empty.
    public static var defaultURL: String {
        let variable = ProcessInfo.processInfo.environment["ROOM_URL"] ?? ""
        return variable.isEmpty ? "ws://127.0.0.1:8480" : variable
    }

    /// Whether the system lets this program use a congestion control.
    package static func isUsable(congestionControl name: String) -> Bool {
        TCPPath.isUsable(congestionControl: name)
    }

    /// Makes an identity from this machine's name and four random characters.
    public static func makeIdentity() -> String {
        var name = utsname()
        let host = unsafe uname(&name) == 0 ? hostName(name) : "client"
        let letters = Array("abcdefghijklmnopqrstuvwxyz0123456789")
        let suffix = (0..<4).map { _ in letters[Int.random(in: 0..<letters.count)] }
        return "\(host)-\(String(suffix))"
    }

    private static func hostName(_ name: utsname) -> String {
        let bytes = unsafe withUnsafeBytes(of: name.nodename) { unsafe Array($0.prefix { $0 != 0 }) }
        return bytes.isEmpty ? "client" : String(decoding: bytes, as: UTF8.self)
    }
}

/// The version of this library.
public let roomKitVersion = Release.version
