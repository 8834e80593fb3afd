"""What coordinators and control ports cost, withstand and reach.

With it: messages and clients of the port.
"""
