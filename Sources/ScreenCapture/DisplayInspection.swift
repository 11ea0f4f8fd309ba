import CXCB
package import MediaCore

/// What an X11 display offers to a `ScreenSource`.
package struct DisplayInspection: Sendable {
    /// The display's name, as in `:0`.
    package let display: String
    /// The size of the whole screen in pixels.
    package let dimensions: Dimensions
    /// How many monitors it has.
    package let monitors: Int
    /// Whether windows can be captured (the extension Composite, from 0.2 on).
    package let hasComposite: Bool
    /// Whether the server takes shared memory as a file descriptor (MIT-SHM, from 1.2 on).
    package let hasSharedMemory: Bool
    /// Whether the connection is a socket of this machine, which shared memory needs.
    package let isLocal: Bool
    /// Whether it is Xwayland, which shows the windows of X11 programs and nothing else of the screen.
    package let isXwayland: Bool
    /// Whether the screen's pixels are stored in a way that we can read.
    package let isReadable: Bool

    /// Connects to a display and asks what it has.
    ///
    /// XFIXES, DAMAGE and RANDR are there if nothing is thrown.
    ///
    /// - Parameter display: The X display, as in `:0`; `nil` for that of the environment's `DISPLAY`.
    /// - Throws: `noDisplay`, `invalidDisplay`, `waylandSession`, `displayUnreachable`, `displayLost`, `noAnswer`, or
    ///   `serverFailed` if an extension is missing.
    package init(of display: String?) throws(ScreenError) {
        let name = try SessionEnvironment.current.displayName(given: display)
        do throws(XFailure) {
            let connection = try XConnection(display: name)
            let directory = ScreenDirectory(connection: connection)
            let geometry = try connection.geometry(of: connection.root)
            self.display = connection.display
            dimensions = Dimensions(width: Int(geometry.width), height: Int(geometry.height))
            monitors = try directory.monitors().count
            hasComposite = connection.extensions.hasComposite
            hasSharedMemory = connection.extensions.takesMemoryFiles
            isLocal = connection.carriesDescriptors
            isXwayland = try directory.isXwayland()
            isReadable = connection.isReadable(depth: geometry.depth, visual: connection.rootVisual)
        } catch {
            throw ScreenError(error, target: "display \(name)")
        }
    }
}
